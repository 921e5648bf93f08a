// SPDX-License-Identifier: Apache-2.0
#pragma once
// Scatter: one rank has all node vectors; at the end every rank has its part of its node's vector. It is gather() in
// the other direction.
//
// The root passes the carriers of its node their slices of the other nodes' vectors, and each slice goes directly to
// its destination node. So every byte leaves the root's node once, the lower bound, over all its lanes. Data for the
// root's own node goes through the root's second channel, so it does not wait for the network.
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

/// `vectors`: on `root`, all vectors, which are read; the root's own part must already be in its place. On every other
/// rank, bytes() and part() are valid for all nodes, but only its own part has memory, and it is written. Lanes are cut
/// at multiples of `unit` bytes. Both outlive the task.
Task scatter(Hierarchy& hierarchy, const NodeVectors& vectors, int root, PipelineSettings pipeline,
             std::int64_t unit = 1);

}  // namespace bestride::inline collectives
