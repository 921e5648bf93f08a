// SPDX-License-Identifier: Apache-2.0
#pragma once
// Alltoall: every rank has a block for every rank. Alltoall, Alltoallv, Alltoallw.
//
// Between two nodes goes one vector: the blocks of all pairs of ranks, ordered by sending rank and then by receiving
// rank, both ascending. So all that one rank sends to a node is contiguous. The vector is cut into lanes. A short
// vector is not cut: one rank of each node carries it, another one in each step, so there is one message instead of one
// per pair of ranks. In step t node n sends to n+t and receives from n-t.
//
// Every byte crosses the network once, as in a flat alltoall. The flat form needs no copy inside the node, so it is
// better for long blocks.
//
// If sizes are unequal, only the senders know them. The senders pass them to the receivers first (block_sizes.hpp).
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/operand.hpp"
#include "collectives/core/task.hpp"

namespace bestride {

/// True if the sizes of unequal blocks fit into half of staging: 8 bytes times ranks times (most ranks on a node + 1).
/// Equal blocks need no room.
bool exchange_fits(const Topology& topology) noexcept;

/// `input.of(r)` goes to rank r, `output.of(r)` comes from rank r. Input and output must not overlap. `equal`: all
/// blocks of all ranks have the same size. Otherwise exchange_fits() must be true, and the senders' input.bytes()
/// decide: if a block is longer than its place, only its beginning is kept and *cut is set; if it is shorter, the rest
/// of the place is unchanged. All arguments outlive the task.
Task alltoall(Hierarchy& hierarchy, const Operands& input, const Operands& output, bool equal,
              PipelineSettings pipeline, bool* cut = nullptr);

}  // namespace bestride
