// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exchange: every rank has a block for every rank. Alltoall, Alltoallv, Alltoallw.
//
// Between two nodes goes one string: the blocks of all pairs, by sending rank, then by receiving rank, both ascending. So what one rank
// sends a node lies together. The string is cut into lanes; a short one is carried whole, by one rank of each node, another one in
// each step: one message instead of one for each pair of ranks. Every byte crosses the wire once either way, as in a flat exchange,
// which needs no copy inside the node: long blocks are better left to that. In the t-th step node n sends to n+t and receives from n-t.
//
// Unequal sizes are known to the two ranks of a pair only. But what a node sends is known to its ranks together, and what it gets too: each tells the
// ranks of its node how much it has for every node and how much it gets from every rank, before anything else, and no message is needed for it.
#include "collectives/hierarchy.hpp"
#include "collectives/operand.hpp"
#include "collectives/strand.hpp"

namespace bestride {

/// The sizes of unequal blocks fit into staging. The same answer on all members. Equal blocks need no room.
bool exchange_fits(const Hierarchy& hierarchy) noexcept;

/// `input.of(r)` goes to rank r, `output.of(r)` comes from rank r; as long as the other end says, and no byte of the one is a byte of the other.
/// `equal`: all blocks of all ranks are of the same size; if not, exchange_fits(). All outlive the strand.
Strand exchange(Hierarchy& hierarchy, const Operands& input, const Operands& output, bool equal, Pace pace);

}  // namespace bestride
