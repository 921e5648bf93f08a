// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who makes the codes of a rank's own block and who reads all blocks' codes, where that is not this room: numbers in memory that
// the CPU does not reach are coded where they lie, and only codes come and go. What is sent is the same: codes follow from the
// numbers alone.
#include <cstddef>

#include "collectives/lanes.hpp"
#include "collectives/operand.hpp"
#include "kernels/quantise/format.hpp"

namespace bestride {

/// This rank's block. Asked in any order, and more than once for the same numbers.
class CodeSource {
 public:
  /// Writes the codes of some numbers of the block, which begin with a code block and end with one or with the last number.
  virtual void encode(Range numbers, std::byte* codes) const noexcept = 0;

 protected:
  ~CodeSource() = default;
};

/// All ranks' blocks, the own one too.
class CodeSink {
 public:
  /// Some numbers of a rank's block, cut as above; each comes once. `codes` hold during the call only.
  virtual void decode(int rank, Range numbers, const std::byte* codes) const noexcept = 0;

 protected:
  ~CodeSink() = default;
};

/// nullptr: the numbers are in the operands.
struct CodedEnds {
  const CodeSource* own = nullptr;
  const CodeSink* all = nullptr;
};

/// Both for numbers in operands.
class OperandEnds final : public CodeSource, public CodeSink {
 public:
  /// `staging`: for numbers that do not lie together, as many as are asked for at a time. `all` and it outlive this.
  OperandEnds(Operand own, const Operands& all, NumberFormat format, CodeBits bits, std::byte* staging) noexcept
      : own_(own), all_(all), format_(format), bits_(bits), staging_(staging) {}
  void encode(Range numbers, std::byte* codes) const noexcept override;
  void decode(int rank, Range numbers, const std::byte* codes) const noexcept override;

 private:
  const Operand own_;
  const Operands& all_;
  const NumberFormat format_;
  const CodeBits bits_;
  std::byte* const staging_;
};

}  // namespace bestride
