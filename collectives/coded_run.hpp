// SPDX-License-Identifier: Apache-2.0
#pragma once
// CodedRun: the same run of numbers of each rank's block, as codes in memory that is there already: what a quantised allgather shares.
//
// Codes lie node by node, and of a node rank by rank. A run begins at a whole number of code blocks, so the codes of a block's runs, one
// after the other, are the codes of the whole block.
#include <cstdint>
#include <vector>

#include "collectives/coded_ends.hpp"
#include "collectives/lanes.hpp"
#include "collectives/operand.hpp"
#include "collectives/strand.hpp"
#include "kernels/quantise/format.hpp"
#include "model/topology.hpp"

namespace bestride {

class CodedRun final : public Operands {
 public:
  /// Numbers coded or read in one step, whole blocks.
  static constexpr std::int64_t part = 256 * 1024;

  /// Numbers [first, first + length) of each block, as far as it has them. Of `blocks` only the sizes count. `room`: for all their codes;
  /// nullptr: their sizes are all that is asked for. `blocks` and `room` outlive this. May throw std::bad_alloc.
  CodedRun(const Topology& topology, const Operands& blocks, NumberFormat format, CodeBits bits, std::int64_t first, std::int64_t length,
           std::byte* room);
  /// The length of a run of which `room_bytes` hold the codes; 0: all blocks have ended.
  static std::int64_t length_within(std::int64_t room_bytes, const Operands& blocks, int ranks, NumberFormat format, CodeBits bits, std::int64_t first) noexcept;

  Operand of(int rank) const noexcept override { return codes_[static_cast<std::size_t>(rank)]; }
  std::int64_t bytes(int rank) const noexcept override { return of(rank).bytes(); }
  /// Where the run's codes begin among those of a whole block.
  std::int64_t begin() const noexcept;

  /// `own`: the rank's whole block; asked for `part` numbers at a time at most.
  void encode(int rank, const CodeSource& own) const noexcept;
  /// All ranks' numbers from their codes, a part at a step, so that what is on the wire meanwhile goes on. `all` outlives the strand.
  Strand decode_all(const CodeSink& all) const;

 private:
  std::int64_t numbers_of(int rank) const noexcept { return blocks_.bytes(rank) / number_; }
  /// Numbers of the run.
  std::int64_t here(int rank) const noexcept;
  /// A part's numbers of the rank's block, and where its codes lie.
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

}  // namespace bestride
