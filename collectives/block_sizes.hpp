// SPDX-License-Identifier: Apache-2.0
#pragma once
// Block sizes: how those who send tell those who receive how long their blocks are, where no rank knows all of it. Gatherv, Scatterv,
// Alltoallv.
//
// What counts is what is sent: both ends cut their strings by it, so they count alike even if a receiver has room for less or more. The sizes
// go the way of the data and just ahead of it: one message for a pair of nodes, and nobody answers. On a node they are handed round.
#include <cstdint>
#include <vector>

#include "collectives/hierarchy.hpp"
#include "collectives/operand.hpp"
#include "collectives/pair_sizes.hpp"
#include "collectives/strand.hpp"

namespace bestride {

/// For collect(): `sizes`, by rank, holds the rank's own; in the end those of its node, and on the root's node all. The others stay.
Strand tell_sizes_upward(Hierarchy& hierarchy, int root, std::vector<std::int64_t>& sizes);

/// For distribute(): `sizes`, by rank, holds all on the root; in the end also on its node, and on every other those of the node. The others stay.
Strand tell_sizes_downward(Hierarchy& hierarchy, int root, std::vector<std::int64_t>& sizes);

/// For exchange(): sets all of `sizes`, which is for unequal blocks and not numbered yet.
Strand tell_pair_sizes(Hierarchy& hierarchy, const Operands& input, PairSizes& sizes);

}  // namespace bestride
