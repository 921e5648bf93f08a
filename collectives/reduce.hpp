// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reduce, to one rank: combine() and collect(), segment by segment.
//
// A node sends its partial results of what belongs to other nodes, and then what it combined itself: together the vector once, the lower
// bound of every node but the root's (in one fixed order, as often as it has partial results, as in combine()). In between, a rank keeps no
// more than its lanes of a segment. The bits are those of allreduce().
#include "collectives/combine.hpp"
#include "collectives/operand.hpp"

namespace bestride {

/// Bytes of a segment at most, a multiple of an element; the same on all members. 0: an element does not fit.
std::int64_t reduce_segment(const Hierarchy& hierarchy, std::int64_t element_bytes) noexcept;

/// `input`: of the same size on all ranks, only read. `output`: as long, on `root` only, and may be its input; elsewhere nothing.
/// `segment`: the same on all ranks, a multiple of an element, at most reduce_segment(). Neither that nor combine_piece() is 0. All
/// outlive the strand.
Strand reduce(Hierarchy& hierarchy, Operand input, Operand output, int root, const Reduction& reduction, const ReductionOrder& order,
              Pace pace, std::int64_t segment);

}  // namespace bestride
