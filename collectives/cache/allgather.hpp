// SPDX-License-Identifier: Apache-2.0
#pragma once
// An allgather that uses past results. If no member's data has changed, the result is copied from the node's arena. If
// a part of the words has changed, the differences cross the network. Otherwise it is a normal allgather, and its
// result is kept.
//
// Each rank compares all bytes of its block with what it contributed before: a hash selects the candidates, a byte
// comparison confirms them. Then all members agree on 32 bytes per rank: inside the node through shared memory, between
// nodes with ceil(log2 nodes) messages. The result is exact for any program, because results are found by content, not
// by address. (ZeRO++'s secondary partition, hpZ, keeps a copy of the weights on each node because the application asks
// for it; arXiv 2306.10209.)
#include "collectives/cache/arena.hpp"
#include "collectives/cache/cache_table.hpp"
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

/// `vectors`: the blocks of all ranks, by node; this rank's block is filled in, the others are written. All members
/// must call with tables that were constructed with the same arguments and have seen the same calls. Each arena has at
/// least the table's budget, or is empty. All arguments outlive the task.
Task cached_allgather(Hierarchy& hierarchy, const RankBlocks& vectors, CacheTable& table, Arena& arena,
                      PipelineSettings pipeline);

}  // namespace bestride::inline collectives
