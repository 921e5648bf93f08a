// SPDX-License-Identifier: Apache-2.0
#pragma once
// Combining: every rank has all nodes' strings; in the end each node's string, combined over all ranks, is with the carriers of that node, a lane
// each. A reduce-scatter, and an allreduce's first half.
//
// The carrier of a lane combines what its node's ranks have in that lane and sends it straight to the carrier of the node it belongs to: each
// node sends (N-1)/N of the vector once, the lower bound. Piece by piece, so that memory and wire work at the same time.
#include "collectives/hierarchy.hpp"
#include "collectives/reduction.hpp"
#include "collectives/strand.hpp"
#include "collectives/strings.hpp"

namespace bestride {

/// Where the result goes, piece by piece: the lanes of this rank, in the order of LanePieces.
class ResultSink {
 public:
  /// `range`: of this node's string. `data` holds until the strand has ended. The strand may wait; the next piece waits for it.
  virtual Strand deliver(int lane, Range range, const std::byte* data) = 0;

 protected:
  ~ResultSink() = default;
};

/// Bytes of a piece of combine(): what staging has room for, at most pace.piece and a slot, a multiple of `unit`. 0: a unit does not fit.
/// `unit`: Reduction::piece_unit().
std::int64_t combine_piece(const Hierarchy& hierarchy, const ReductionOrder& order, std::int64_t unit, Pace pace) noexcept;

/// All outlive the strand. combine_piece() is not 0.
Strand combine(Hierarchy& hierarchy, const NodeStrings& input, const Reduction& reduction, const ReductionOrder& order, ResultSink& sink, Pace pace);

}  // namespace bestride
