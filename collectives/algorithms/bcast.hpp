// SPDX-License-Identifier: Apache-2.0
#pragma once
// Broadcast along a chain of nodes that begins with the root's node. Pieces move through the chain one after the other,
// on each lane independently.
//
// Each link carries the buffer once in and once out: the lower bound at the root and at every other node. A piece
// crosses N-1 links one after the other, so the last node ends (N-2) pieces after the bandwidth limit. So pieces must
// be small compared with a lane (perfmodel chooses their size). Alternative considered: scatter and allgather, which
// sends 2 (N-1)/N of the buffer over the root's link.
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/operand.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

/// `data` has the same size on all ranks. It is read on `root` and written on the others.
Task bcast(Hierarchy& hierarchy, Operand data, int root, PipelineSettings pipeline);

}  // namespace bestride::inline collectives
