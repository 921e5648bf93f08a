// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gather: every rank has its part of its node's vector; at the end one rank has all node vectors. It is also the second
// half of a reduce.
//
// Each node's vector goes directly to the root's node, one slice per lane. So every byte enters that node once, the
// lower bound, over all its lanes. The carriers there pass the data to the root. If a rank's part is the lane that it
// carries (equal blocks on nodes with as many ranks as lanes), the sending nodes copy nothing between their ranks.
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

/// `vectors`: on `root`, all vectors; on entry its own part is filled in, and the rest is filled in by the task. On
/// every other rank, bytes() and part() are valid for all nodes, but only its own part has data; it is read, and
/// nothing is written. Lanes are cut at multiples of `unit` bytes. Both outlive the task.
Task gather(Hierarchy& hierarchy, const NodeVectors& vectors, int root, PipelineSettings pipeline,
            std::int64_t unit = 1);

}  // namespace bestride::inline collectives
