// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives that move data between ranks that share one memory: each rank packs from its buffer into its slots, and
// the others unpack from there, so any datatype costs two copies.
//
// All arguments outlive the task. What a rank receives is determined by the sender: a message that is shorter than its
// block leaves the rest as it is, and one that is longer is cut off (CallOutcome).
#include "collectives/core/operand.hpp"
#include "collectives/core/task.hpp"
#include "collectives/one_node/rounds.hpp"

namespace bestride::inline collectives {

Task bcast(Rounds& rounds, Operand data, int root);

/// `own`: this rank's block. `all.of(r)` receives the block of rank r; `all.of(rank)` may be `own`.
Task allgather(Rounds& rounds, Operand own, const Operands& all);

/// `own`: this rank's block. `all`: on the root, receives the blocks, except that all.of(root) may be `own`; nullptr
/// elsewhere.
Task gather(Rounds& rounds, Operand own, const Operands* all, int root);

/// `all`: on the root, the blocks; nullptr elsewhere. `own` receives this rank's block; on the root it may be
/// all.of(root).
Task scatter(Rounds& rounds, const Operands* all, Operand own, int root);

/// `input.of(r)` goes to rank r, `output.of(r)` comes from rank r. Input and output must not overlap.
Task alltoall(Rounds& rounds, const Operands& input, const Operands& output);

}  // namespace bestride::inline collectives
