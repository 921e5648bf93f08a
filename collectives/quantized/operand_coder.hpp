// SPDX-License-Identifier: Apache-2.0
#pragma once
// OperandCoder: encodes a rank's own block, and decodes all blocks, in operands.
#include <cstddef>

#include "collectives/core/lanes.hpp"
#include "collectives/core/operand.hpp"
#include "kernels/quantize/format.hpp"

namespace bestride::inline collectives {

class OperandCoder {
 public:
  /// `staging`: for numbers that are not contiguous; it has room for as many as are requested at a time. `all` and
  /// `staging` outlive this object.
  OperandCoder(Operand own, const Operands& all, NumberFormat format, CodeBits bits, std::byte* staging) noexcept
      : own_(own), all_(all), format_(format), bits_(bits), staging_(staging) {}
  /// Writes the codes of some numbers of the own block. They begin at a code block, and end at a code block or with the
  /// last number. In any order, and more than once for the same numbers.
  void encode(Range numbers, std::byte* codes) const noexcept;
  /// Reads the codes of some numbers of a rank's block, cut as above.
  void decode(int rank, Range numbers, const std::byte* codes) const noexcept;

 private:
  const Operand own_;
  const Operands& all_;
  const NumberFormat format_;
  const CodeBits bits_;
  std::byte* const staging_;
};

}  // namespace bestride::inline collectives
