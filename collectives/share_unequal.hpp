// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sharing between nodes that bring unequally many bytes: share() takes this way if the RelayPlan is not even.
//
// No node sends or receives more than the busiest link has to carry. Each pair of ranks has its own messages under way at the same time,
// so that a node with much to send is not held up by one that receives from it in its turn only (3, 1 and 2 ranks: 1.4 times
// the limit in share()'s steps, 1.05 so, by simulation).
//
// It can't come to a standstill, with any number of messages in flight: a pair's own legs wait for nothing but the own legs of pairs before
// it, in the order of steps, at either end; so the first that has not ended can always go on, and all end. An onward leg
// waits for own legs, and for onward legs before it in the same order.
#include "collectives/relays.hpp"
#include "collectives/share.hpp"

namespace bestride {

/// As share(). The plan is of the strings' bytes and `unit`, not even, and outlives the strand.
Strand share_unequal(Hierarchy& hierarchy, const NodeStrings& strings, const RelayPlan& plan, Pace pace, std::int64_t unit, Kept* kept, PieceCode* code);

}  // namespace bestride
