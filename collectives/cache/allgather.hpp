// SPDX-License-Identifier: Apache-2.0
#pragma once
// An allgather that knows past results: what nobody changed is copied out of the node's arena, what changed in a part of its words crosses
// the wire as the difference, and all else is shared as ever and kept.
//
// Each rank compares all bytes of its block with what it gave before (a hash picks what to compare, the bytes decide), and all agree on 32
// bytes a rank: inside the node through shared memory, between nodes ceil(log2 nodes) messages. Exact for any program: content counts,
// not addresses. (ZeRO++'s secondary partition, hpZ, keeps a copy of the weights in each node because the application says so;
// arXiv 2306.10209.)
#include "collectives/cache/arena.hpp"
#include "collectives/cache/cache_table.hpp"
#include "collectives/hierarchy.hpp"
#include "collectives/strand.hpp"
#include "collectives/strings.hpp"

namespace bestride {

/// `strings`: as for share(): this rank's block is filled in. All members call with tables made alike that saw the same calls, and an arena
/// of at least the table's budget each, or none. All outlive the strand.
Strand allgather_cached(Hierarchy& hierarchy, const RankBlocks& strings, CacheTable& table, Arena& arena, Pace pace);

}  // namespace bestride
