// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reduce to one rank: reduce_to_owners() and gather(), segment by segment.
//
// A node sends its partial results to the nodes that own them, and then the results that it owns to the root: together
// the vector once, the lower bound for every node but the root's. (If the order matters, it sends one copy per partial
// result, as in reduce_to_owners().) Between the two phases a rank keeps only its lanes of one segment. The result has
// the same bits as allreduce().
#include "collectives/algorithms/reduce_to_owners.hpp"
#include "collectives/core/operand.hpp"

namespace bestride::inline collectives {

/// The largest segment in bytes, a multiple of an element; the same on all members. 0: an element does not fit.
std::int64_t reduce_segment(const Hierarchy& hierarchy, std::int64_t element_bytes) noexcept;

/// `input` has the same size on all ranks and is only read. `output` has this size on `root`, where it may be the
/// input; elsewhere it is not used. `segment`: the same on all ranks, a multiple of an element, at most
/// reduce_segment(). Neither reduce_segment() nor combine_piece() may be 0. All arguments outlive the task.
Task reduce(Hierarchy& hierarchy, Operand input, Operand output, int root, const Reduction& reduction,
            const ReductionOrder& order, PipelineSettings pipeline, std::int64_t segment);

}  // namespace bestride::inline collectives
