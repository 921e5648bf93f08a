// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reduce-scatter and allreduce, out of combine() and share().
#include "collectives/combine.hpp"

namespace bestride {

/// Every rank has a block for every rank (`input`); in the end `output` holds this rank's blocks of all ranks, combined.
/// `input` of a rank must be of the same size on all ranks; `output`: this rank's, and may be where its own input block lies. All
/// outlive the strand. combine_piece() is not 0.
Strand reduce_scatter(Hierarchy& hierarchy, const Operands& input, Operand output, const Reduction& reduction, const ReductionOrder& order, Pace pace);

/// The same of any strings of elements. Of `output`, of the same shape, nothing but this rank's own part is written.
Strand reduce_scatter(Hierarchy& hierarchy, const NodeStrings& input, const NodeStrings& output, const Reduction& reduction,
                      const ReductionOrder& order, Pace pace);

/// Of `output`, of the input's shape, what belongs to the lanes of this rank is written: an allreduce's first half.
Strand reduce_to_lanes(Hierarchy& hierarchy, const NodeStrings& input, const NodeStrings& output, const Reduction& reduction,
                       const ReductionOrder& order, Pace pace);

/// `input` and `output` (of the same size on all ranks) may be the same buffer.
Strand allreduce(Hierarchy& hierarchy, Operand input, Operand output, const Reduction& reduction, const ReductionOrder& order, Pace pace);

}  // namespace bestride
