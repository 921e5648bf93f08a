// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exchange: every rank has a block for every rank. Alltoall, Alltoallv, Alltoallw.
//
// Between two nodes goes one string: the blocks of all pairs, by sending rank, then by receiving rank, both ascending. So what one rank
// sends a node lies together. The string is cut into lanes; a short one is carried whole, by one rank of each node, another one in
// each step: one message instead of one for each pair of ranks. Every byte crosses the wire once either way, as in a flat exchange,
// which needs no copy inside the node: long blocks are better left to that. In the t-th step node n sends to n+t and receives from n-t.
//
// Unequal sizes are known to those who send. Before anything else they tell the others (block_sizes.hpp).
#include "collectives/hierarchy.hpp"
#include "collectives/operand.hpp"
#include "collectives/strand.hpp"

namespace bestride {

/// The sizes of unequal blocks, 8 bytes times ranks times (most ranks on a node + 1), fit into half of staging. Equal blocks need no room.
bool exchange_fits(const Topology& topology) noexcept;

/// `input.of(r)` goes to rank r, `output.of(r)` comes from rank r. No byte of the input is one of the output. `equal`: all blocks of all ranks
/// are of the same size; if not, exchange_fits(), and input.bytes() counts: of what is longer than its place only the beginning is
/// kept, and *cut is set; where less comes the rest stays as it is. All outlive the strand.
Strand exchange(Hierarchy& hierarchy, const Operands& input, const Operands& output, bool equal, Pace pace, bool* cut = nullptr);

}  // namespace bestride
