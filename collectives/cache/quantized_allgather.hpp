// SPDX-License-Identifier: Apache-2.0
#pragma once
// A quantized allgather that uses past results. It keeps, hashes and compares codes. Every rank, including the sender,
// reads every block from its codes, so equal codes give equal results, bit for bit. A change of a number that leaves
// its code unchanged is not sent either. Codes take an eighth to a half of the memory of the numbers, and decoding them
// from the arena is as fast as copying numbers. Differences of codes are not used: if one number of a block grows, all
// codes of the block change.
#include "collectives/cache/arena.hpp"
#include "collectives/cache/cache_table.hpp"
#include "collectives/quantized/quantized_collectives.hpp"

namespace bestride::inline collectives {

/// A quantized_allgather() that uses past results. `table` and `arena` may be those of cached_allgather(), and calls of
/// both may be mixed. All arguments outlive the task.
Task cached_quantized_allgather(Hierarchy& hierarchy, Operand own, const Operands& all, NumberFormat format,
                                CodeBits bits, CacheTable& table, Arena& arena, PipelineSettings pipeline);

}  // namespace bestride::inline collectives
