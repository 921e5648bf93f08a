// SPDX-License-Identifier: Apache-2.0
#pragma once
// Broadcast: a chain of nodes, beginning with the root's, through which the pieces move one after the other, every lane by itself.
//
// Each link carries the buffer once in and once out: the lower bound at the root and at every other node. A piece crosses N-1 links one
// after the other, so the last node is done (N-2) pieces after the wire's limit: pieces must be small against a lane (perfmodel
// chooses). Alternative that lost: scattering and sharing, which takes 2 (N-1)/N out of the root's link.
#include "collectives/hierarchy.hpp"
#include "collectives/operand.hpp"
#include "collectives/strand.hpp"

namespace bestride {

/// `data`: of the same size on all ranks; read on `root`, written on the others.
Strand broadcast(Hierarchy& hierarchy, Operand data, int root, Pace pace);

}  // namespace bestride
