// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collecting: every rank has its part of its node's string; in the end one rank has all strings. A gather, and a reduce's second half.
//
// Each node's string goes straight to the root's node, a slice on every lane: every byte enters that node once, the lower bound, over as
// many lanes as it has. There the carriers hand to the root what arrives. Where a rank's part is the lane it carries (equal blocks on nodes
// with as many ranks as lanes), nothing is handed round on the sending nodes.
#include "collectives/hierarchy.hpp"
#include "collectives/strand.hpp"
#include "collectives/strings.hpp"

namespace bestride {

/// `strings`: on `root`, all of them, its own part filled in; the rest will be. On every other rank, bytes() and part() of all, but only
/// its own part is there: it is read, and nothing is written. Cut into lanes at multiples of `unit` bytes. Both outlive the strand.
Strand collect(Hierarchy& hierarchy, const NodeStrings& strings, int root, Pace pace, std::int64_t unit = 1);

}  // namespace bestride
