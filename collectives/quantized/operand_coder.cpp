// SPDX-License-Identifier: Apache-2.0
#include "collectives/quantized/operand_coder.hpp"

#include "kernels/quantize/quantize.hpp"

namespace bestride::inline collectives {

void OperandCoder::encode(Range numbers, std::byte* codes) const noexcept {
  const std::int64_t number = number_bytes(format_);
  const std::byte* from = own_.at(numbers.first * number);
  if (!from) {
    own_.read(staging_, numbers.first * number, numbers.last * number);
    from = staging_;
  }
  quantize(from, format_, numbers.length(), bits_, codes);
}

void OperandCoder::decode(int rank, Range numbers, const std::byte* codes) const noexcept {
  const std::int64_t number = number_bytes(format_);
  const Operand block = all_.of(rank);
  std::byte* to = block.at(numbers.first * number);
  dequantize(codes, bits_, numbers.length(), format_, to ? to : staging_);
  if (!to) block.write(staging_, numbers.first * number, numbers.last * number);
}

}  // namespace bestride::inline collectives
