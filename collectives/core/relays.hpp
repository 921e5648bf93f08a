// SPDX-License-Identifier: Apache-2.0
#pragma once
// RelayPlan: for nodes that contribute unequal numbers of bytes, which parts of a node's vector go to the other nodes
// directly and which go through another node, a relay.
//
// Of N nodes, node n contributes b_n bytes, T in total. It has to receive T - b_n, so the busiest link carries at least
// L = T - min b. No node has to send more than L, because all together send (N-1) T <= N L. If node n sends directly to
// all others, it sends (N-1) b_n. If that exceeds L, it sends only one copy of ((N-1) b_n - L) / (N-2) bytes, to a
// relay, which forwards them to the other N-2 nodes. A relay is a node that sends less than L on its own. The spare
// capacity of the relays is at least the excess of the other nodes, and relaying does not change how much a node
// receives. So L is reached with two hops.
//
// The reverse is the plan of a reduction in which node n receives b_n bytes, reduced over all nodes: a relay reduces
// the data that goes through it, and node n receives the result. For simplicity node n sends its own contribution to
// the relay, too, so the relay receives N-1 copies. The relays have the capacity for that: a node with an excess hands
// over at most b_n - min b, so all relays together receive at most T - N min b more, which is exactly their spare
// capacity.
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/lanes.hpp"

namespace bestride::inline collectives {

/// A range of a node's vector.
struct RelayedRange {
  static constexpr int direct = -1;
  int node = 0;
  int relay = direct;  ///< the node that it goes through
  int index = 0;       ///< if it has a relay: its index in through(relay)
  Range range;
};

/// Computed in integers, so the same on all members. Immutable.
class RelayPlan {
 public:
  /// Which copies pass a relay: those for the nodes other than the owner (allgather), or those of all nodes
  /// (reduction).
  enum class Copies { of_others, of_all };
  /// `bytes`: by node, multiples of `unit`, (N-1) T < 2^63. All cuts are at multiples of `unit`. `worth`: differences
  /// below this, or below 1/64 of L, are ignored. May throw std::bad_alloc.
  RelayPlan(std::span<const std::int64_t> bytes, std::int64_t unit, std::int64_t worth,
            Copies copies = Copies::of_others);

  /// True if the contributions are so similar, or the nodes so few, that all data is sent directly, in any order.
  /// Always true if contributions differ by one unit at most.
  bool even() const noexcept { return even_; }
  /// The ranges of a node's vector, from its beginning to its end. The last one goes directly. Relays come in the same
  /// order in all vectors, each at most once.
  std::span<const RelayedRange> of(int node) const noexcept { return run(by_node_, begins_, node); }
  /// What a relay forwards, in ascending order of nodes.
  std::span<const RelayedRange> through(int relay) const noexcept { return run(by_relay_, relay_begins_, relay); }

 private:
  static std::span<const RelayedRange> run(const std::vector<RelayedRange>& all, const std::vector<std::size_t>& begins,
                                           int index) noexcept {
    const std::size_t first = begins[static_cast<std::size_t>(index)];
    return std::span(all).subspan(first, begins[static_cast<std::size_t>(index) + 1] - first);
  }

  bool even_ = true;
  std::vector<RelayedRange> by_node_, by_relay_;
  std::vector<std::size_t> begins_, relay_begins_;  ///< by node, and the end
};

}  // namespace bestride::inline collectives
