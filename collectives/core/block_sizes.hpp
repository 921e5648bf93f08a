// SPDX-License-Identifier: Apache-2.0
#pragma once
// Block sizes: how the senders of Gatherv, Scatterv and Alltoallv pass the sizes of their blocks to the receivers. No
// rank knows all of these sizes in advance.
//
// The number of bytes sent is what counts. Both ends cut their node vectors by it, so they agree even if a receiver has
// room for less or more. The sizes take the same path as the data, just ahead of it: one message per pair of nodes,
// without a reply. Inside a node they go through the channels.
#include <cstdint>
#include <vector>

#include "collectives/core/hierarchy.hpp"
#include "collectives/core/operand.hpp"
#include "collectives/core/pair_sizes.hpp"
#include "collectives/core/task.hpp"

namespace bestride {

/// For gather(). On entry `sizes`, indexed by rank, holds this rank's own size. On return it also holds those of its
/// node, and on the root's node those of all ranks. Other entries are unchanged.
Task send_sizes_upward(Hierarchy& hierarchy, int root, std::vector<std::int64_t>& sizes);

/// For scatter(). On entry `sizes`, indexed by rank, holds all sizes on the root. On return it holds all of them on the
/// root's node, and on every other node those of that node's ranks. Other entries are unchanged.
Task send_sizes_downward(Hierarchy& hierarchy, int root, std::vector<std::int64_t>& sizes);

/// For alltoall(). Sets all of `sizes`, which must be made for unequal blocks and not be numbered yet.
Task send_pair_sizes(Hierarchy& hierarchy, const Operands& input, PairSizes& sizes);

}  // namespace bestride
