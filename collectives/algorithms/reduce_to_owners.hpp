// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reduce to owners: every rank has data for all node vectors. At the end each node's vector, reduced over all ranks, is
// on that node, each lane on its carrier. It is a reduce-scatter, and the first half of an allreduce.
//
// The carrier of a lane reduces what its node's ranks have in that lane and sends the result directly to the carrier on
// the node that owns it. So each node sends (N-1)/N of the vector once, the lower bound. This is done piece by piece,
// so that memory and network work at the same time.
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/reduction.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

/// Receives the result piece by piece: the lanes of this rank, in the order of LanePieces.
class ResultSink {
 public:
  /// `range`: of this node's vector. `data` is valid until the returned task has ended. That task may wait; the next
  /// piece is delivered after it.
  virtual Task deliver(int lane, Range range, const std::byte* data) = 0;

 protected:
  ~ResultSink() = default;
};

/// The piece size of reduce_to_owners() in bytes: a multiple of `unit`, at most pipeline.piece, a slot, and what fits
/// into staging. 0: a unit does not fit. `unit`: Reduction::piece_unit().
std::int64_t combine_piece(const Hierarchy& hierarchy, const ReductionOrder& order, std::int64_t unit,
                           PipelineSettings pipeline) noexcept;

/// All arguments outlive the task. combine_piece() must not be 0.
Task reduce_to_owners(Hierarchy& hierarchy, const NodeVectors& input, const Reduction& reduction,
                      const ReductionOrder& order, ResultSink& sink, PipelineSettings pipeline);

}  // namespace bestride::inline collectives
