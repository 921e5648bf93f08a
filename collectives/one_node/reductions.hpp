// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reductions between ranks that share one memory. A rank reduces its share of the data, from the slots of all ranks,
// and the others read its result; short data is reduced by every rank that needs it, which saves a round.
//
// Exact operations are applied in descending order of ranks, all others in the fixed order of ReductionTree, so a
// result has the same bits as between nodes. Reduction::element_bytes is at most Rounds::part_bytes() and
// Rounds::strip_bytes. All arguments outlive the task.
#include "collectives/core/operand.hpp"
#include "collectives/core/reduction.hpp"
#include "collectives/core/task.hpp"
#include "collectives/one_node/rounds.hpp"

namespace bestride::inline collectives {

/// Both have the same size on all ranks; `input` may be `output`.
Task allreduce(Rounds& rounds, Operand input, Operand output, const Reduction& reduction);

/// `output`: used on the root only, where it may be `input`.
Task reduce(Rounds& rounds, Operand input, Operand output, int root, const Reduction& reduction);

/// Bytes up to which contributions are reduced in one round.
std::int64_t longest_in_one_round(const Rounds& rounds) noexcept;
/// The end of that round, after all ranks have published their contributions; this rank's has output.bytes() bytes.
void reduce_one_round(Rounds& rounds, Rounds::Number round, const Operand& output, const Reduction& reduction) noexcept;

/// `input.of(r)`: what this rank contributes to the result of rank r; the sizes are the same on all ranks. `output`
/// does not overlap the input.
Task reduce_scatter(Rounds& rounds, const Operands& input, Operand output, const Reduction& reduction);

}  // namespace bestride::inline collectives
