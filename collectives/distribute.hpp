// SPDX-License-Identifier: Apache-2.0
#pragma once
// Distributing: one rank has all strings; in the end every rank has its part of its node's string. A scatter: collect() the other way.
//
// The root hands the carriers of its node their slices of the other nodes' strings, and each goes straight to the node it is for: every
// byte leaves the root's node once, the lower bound, over as many lanes as it has. What is for the root's own node goes by the root's
// second channel, so that it does not wait for the wire.
#include "collectives/hierarchy.hpp"
#include "collectives/strand.hpp"
#include "collectives/strings.hpp"

namespace bestride {

/// `strings`: on `root`, all of them, read; its own part is where it shall be. On every other rank, bytes() and part() of all, but only
/// its own part is there: it is written. Cut into lanes at multiples of `unit` bytes. Both outlive the strand.
Strand distribute(Hierarchy& hierarchy, const NodeStrings& strings, int root, Pace pace, std::int64_t unit = 1);

}  // namespace bestride
