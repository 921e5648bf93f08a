// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reduce-scatter and allreduce, built from reduce_to_owners() and allgather().
#include "collectives/algorithms/reduce_to_owners.hpp"

namespace bestride::inline collectives {

/// Every rank has a block for every rank (`input`). At the end `output` holds the reduction of all ranks' blocks for
/// this rank. The block for a given rank has the same size on all ranks. `output` is this rank's block, and may be the
/// memory of its own input block. All arguments outlive the task. combine_piece() must not be 0.
Task reduce_scatter(Hierarchy& hierarchy, const Operands& input, Operand output, const Reduction& reduction,
                    const ReductionOrder& order, PipelineSettings pipeline);

/// A reduce-scatter of node vectors of elements. `output` has the shape of `input`; only this rank's own part of it is
/// written. All arguments outlive the task.
Task reduce_scatter(Hierarchy& hierarchy, const NodeVectors& input, const NodeVectors& output,
                    const Reduction& reduction, const ReductionOrder& order, PipelineSettings pipeline);

/// The first half of an allreduce. `output` has the shape of the input; only the lanes of this rank are written.
Task reduce_to_lanes(Hierarchy& hierarchy, const NodeVectors& input, const NodeVectors& output,
                     const Reduction& reduction, const ReductionOrder& order, PipelineSettings pipeline);

/// `input` and `output` have the same size on all ranks, and may be the same buffer.
Task allreduce(Hierarchy& hierarchy, Operand input, Operand output, const Reduction& reduction,
               const ReductionOrder& order, PipelineSettings pipeline);

}  // namespace bestride::inline collectives
