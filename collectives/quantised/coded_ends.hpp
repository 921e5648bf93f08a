// SPDX-License-Identifier: Apache-2.0
#pragma once
// Interfaces for encoding a rank's own block and decoding all blocks outside of this directory. They are for numbers in
// memory that the CPU can't access: numbers are coded where they lie, and only codes are copied. The codes depend on
// the numbers only, so the network carries the same bytes.
#include <cstddef>

#include "collectives/core/lanes.hpp"
#include "collectives/core/operand.hpp"
#include "kernels/quantise/format.hpp"

namespace bestride {

/// This rank's block. It may be called in any order, and more than once for the same numbers.
class CodeSource {
 public:
  /// Writes the codes of some numbers of the block. They begin at a code block, and end at a code block or with the
  /// last number.
  virtual void encode(Range numbers, std::byte* codes) const noexcept = 0;

 protected:
  ~CodeSource() = default;
};

/// The blocks of all ranks, including this one.
class CodeSink {
 public:
  /// Takes the codes of some numbers of a rank's block, cut as above; each number comes once. `codes` is valid during
  /// the call only.
  virtual void decode(int rank, Range numbers, const std::byte* codes) const noexcept = 0;

 protected:
  ~CodeSink() = default;
};

/// nullptr: the numbers are in the operands.
struct CodedEnds {
  const CodeSource* own = nullptr;
  const CodeSink* all = nullptr;
};

/// Both interfaces for numbers in operands.
class OperandEnds final : public CodeSource, public CodeSink {
 public:
  /// `staging`: for numbers that are not contiguous; it has room for as many as are requested at a time. `all` and
  /// `staging` outlive this object.
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
