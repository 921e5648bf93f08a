// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sharing: every rank has its part of its node's string; in the end every rank has all strings. An allgather, and an allreduce's second half.
//
// Each node's string leaves it once for every other node, a slice on every lane, straight to where it is needed: (N-1)/N of the result
// in and out of every node, the lower bound. In the t-th step node n sends to n+t and receives from n-t, so that no
// node is sent to by two at a time. Inside the node all goes through the channels: one copy in, one copy out on each rank.
#include "collectives/hierarchy.hpp"
#include "collectives/strand.hpp"
#include "collectives/strings.hpp"

namespace bestride {

/// `strings`: this rank's part of its own node's string is filled in; the rest will be. Cut into lanes at multiples of `unit` bytes.
/// Both outlive the strand.
Strand share(Hierarchy& hierarchy, const NodeStrings& strings, Pace pace, std::int64_t unit = 1);

}  // namespace bestride
