// SPDX-License-Identifier: Apache-2.0
#pragma once
// Alltoall: every rank has a block for every rank; all blocks have the same size.
//
// A node sends one vector to each other node: the blocks of all pairs of ranks, ordered by sending rank and then by
// receiving rank, both ascending. So the data that one rank sends to a node is contiguous. The vector is cut into
// lanes. A short vector is not cut: one rank of each node, a different one in each step, carries it, so there is one
// message instead of one per pair of ranks. In step t node n sends to n+t and receives from n-t.
//
// Every byte crosses the network once, as in a flat alltoall. The flat form needs no copy inside the node, so it is
// better for long blocks.
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/operand.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

/// `input.of(r)` goes to rank r, `output.of(r)` comes from rank r. Input and output must not overlap. All arguments
/// outlive the task.
Task alltoall(Hierarchy& hierarchy, const Operands& input, const Operands& output, PipelineSettings pipeline);

/// An alltoall without regard to the nodes, one pair of ranks at a time, for blocks of any sizes below 2 GiB. May throw
/// std::bad_alloc.
Task pairwise_alltoall(Hierarchy& hierarchy, const Operands& input, const Operands& output);

}  // namespace bestride::inline collectives
