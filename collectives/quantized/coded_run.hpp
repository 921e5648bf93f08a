// SPDX-License-Identifier: Apache-2.0
#pragma once
// CodedRun: the same range of numbers of each rank's block, as codes in given memory: the data that a quantized
// allgather sends.
//
// Codes are ordered by node, and within a node by rank. A run begins at a multiple of a code block, so the codes of a
// block's runs, one after the other, are the codes of the whole block.
#include <cstdint>
#include <vector>

#include "collectives/core/lanes.hpp"
#include "collectives/core/operand.hpp"
#include "collectives/core/task.hpp"
#include "collectives/quantized/operand_coder.hpp"
#include "kernels/quantize/format.hpp"
#include "model/topology.hpp"

namespace bestride::inline collectives {

class CodedRun final : public Operands {
 public:
  /// Numbers encoded or decoded in one step; whole code blocks.
  static constexpr std::int64_t part = 256 * 1024;

  /// Numbers [first, first + length) of each block, as far as the block has them. Only the sizes of `blocks` are used.
  /// `buffer` takes all their codes; nullptr: only sizes will be requested. `blocks` and `buffer` outlive this object.
  /// May throw std::bad_alloc.
  CodedRun(const Topology& topology, const Operands& blocks, NumberFormat format, CodeBits bits, std::int64_t first,
           std::int64_t length, std::byte* buffer);
  /// The length of a run whose codes fit into `room_bytes`. 0: all blocks have ended.
  static std::int64_t length_within(std::int64_t room_bytes, const Operands& blocks, int ranks, NumberFormat format,
                                    CodeBits bits, std::int64_t first) noexcept;

  Operand of(int rank) const noexcept override { return codes_[static_cast<std::size_t>(rank)]; }
  std::int64_t bytes(int rank) const noexcept override { return of(rank).bytes(); }
  /// Where the run's codes begin among the codes of a whole block.
  std::int64_t begin() const noexcept;

  /// `coder`: of whole blocks, with room for `part` numbers.
  void encode(int rank, const OperandCoder& coder) const noexcept;
  /// Decodes the numbers of all ranks, one part per step, so that messages in flight make progress. `coder` outlives
  /// the task.
  Task decode_all(const OperandCoder& coder) const;

 private:
  std::int64_t numbers_of(int rank) const noexcept { return blocks_.bytes(rank) / number_; }
  /// The number of the rank's numbers in this run.
  std::int64_t here(int rank) const noexcept;
  /// The numbers of one part of the rank's block, and the place of their codes.
  struct Part {
    Range numbers;
    std::byte* codes;
  };
  std::int64_t parts(int rank) const noexcept { return pieces_in(here(rank), part); }
  Part part_of_run(int rank, std::int64_t index) const noexcept;

  const Operands& blocks_;
  const NumberFormat format_;
  const CodeBits bits_;
  const std::int64_t number_, first_, length_;
  std::vector<Operand> codes_;
};

}  // namespace bestride::inline collectives
