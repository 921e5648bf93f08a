// SPDX-License-Identifier: Apache-2.0
#pragma once
// A quantised allgather that knows past results. What is kept, hashed and compared are codes: every rank, the sender too, reads every block
// from its codes, so equal codes are equal results, bit for bit, and what a rank changed by less than the codes tell crosses no wire either.
// Codes take an eighth to a half of the memory that numbers take, and are read from the arena as fast as numbers would be copied.
// Differences of codes are not looked for: a block of which one number grows gets new codes throughout.
#include "collectives/cache/arena.hpp"
#include "collectives/cache/cache_table.hpp"
#include "collectives/quantised.hpp"

namespace bestride {

/// As quantised_allgather(), with the tables and arenas of allgather_cached(), which may be called on them in between.
Strand quantised_allgather_cached(Hierarchy& hierarchy, Operand own, const Operands& all, NumberFormat format, CodeBits bits,
                                  CacheTable& table, Arena& arena, Pace pace, CodedEnds ends = {});

}  // namespace bestride
