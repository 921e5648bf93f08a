// SPDX-License-Identifier: Apache-2.0
#include "collectives/quantized/coded_run.hpp"

#include <algorithm>

#include "collectives/core/hierarchy.hpp"
#include "kernels/quantize/quantize.hpp"

namespace bestride::inline collectives {

static_assert(CodedRun::part * 8 <= Hierarchy::staging_bytes);

CodedRun::CodedRun(const Topology& topology, const Operands& blocks, NumberFormat format, CodeBits bits,
                   std::int64_t first, std::int64_t length, std::byte* buffer)
    : blocks_(blocks),
      format_(format),
      bits_(bits),
      number_(number_bytes(format)),
      first_(first),
      length_(length),
      codes_(static_cast<std::size_t>(topology.ranks())) {
  for (int node = 0; node < topology.nodes(); ++node)
    for (const int rank : topology.ranks_on(node)) {
      const std::int64_t bytes = quantized_bytes(here(rank), format, bits);
      codes_[static_cast<std::size_t>(rank)] = Operand(buffer, bytes);
      if (buffer) buffer += bytes;
    }
}

std::int64_t CodedRun::length_within(std::int64_t room_bytes, const Operands& blocks, int ranks, NumberFormat format,
                                     CodeBits bits, std::int64_t first) noexcept {
  std::int64_t going_on = 0;
  for (int rank = 0; rank < ranks; ++rank) going_on += blocks.bytes(rank) / number_bytes(format) > first;
  if (going_on == 0) return 0;
  const std::int64_t block = quantized_block_size(bits);
  return room_bytes / going_on / quantized_bytes(block, format, bits) * block;
}

std::int64_t CodedRun::here(int rank) const noexcept {
  return std::clamp<std::int64_t>(numbers_of(rank) - first_, 0, length_);
}

std::int64_t CodedRun::begin() const noexcept { return quantized_bytes(first_, format_, bits_); }

CodedRun::Part CodedRun::part_of_run(int rank, std::int64_t index) const noexcept {
  const std::int64_t begin = index * part, end = std::min(begin + part, here(rank));
  return {{first_ + begin, first_ + end}, of(rank).at(quantized_bytes(begin, format_, bits_))};
}

void CodedRun::encode(int rank, const OperandCoder& coder) const noexcept {
  for (std::int64_t i = 0; i < parts(rank); ++i) {
    const Part part = part_of_run(rank, i);
    coder.encode(part.numbers, part.codes);
  }
}

Task CodedRun::decode_all(const OperandCoder& coder) const {
  for (int rank = 0; rank < static_cast<int>(codes_.size()); ++rank)
    for (std::int64_t i = 0; i < parts(rank); ++i) {
      co_await pause();
      const Part part = part_of_run(rank, i);
      coder.decode(rank, part.numbers, part.codes);
    }
}

}  // namespace bestride::inline collectives
