// SPDX-License-Identifier: Apache-2.0
#pragma once
// RelayPlan: between nodes that bring unequally many bytes, what of a node's string goes to the other nodes straight, and what through
// one of them.
//
// Of N nodes, node n brings b_n bytes, T in all. It has to receive T - b_n, so the busiest link carries at least L = T - min b, and no node
// has to send more than L: all together send (N-1) T <= N L. Straight to everyone, node n sends (N-1) b_n. If that is more than L, of
// ((N-1) b_n - L) / (N-2) bytes it sends one copy, to a relay, which sends them on to the other N-2; a relay is a node that by itself sends less than L.
// What the relays may send more is at least what the others should send less, and what a node receives stays as it was: L is reached with two hops.
//
// Read backwards it is a reduction's, in which node n gets b_n bytes combined over all: what goes through a relay is combined there, and node n is
// sent the result. Simplest is that node n sends its own contribution there, too, so that the relay receives N-1 copies. There is
// room for that: a node n of the first kind gives away at most b_n - min b, and so all that the relays have too little would be at most
// T - N min b, which is just what they have too much.
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/lanes.hpp"

namespace bestride {

/// A run of a node's string.
struct Stretch {
  static constexpr int straight = -1;
  int node = 0;
  int relay = straight;  ///< the node that it goes through
  int place = 0;         ///< of one with a relay: its index in through(relay)
  Range range;
};

/// Pure whole numbers: the same on all members. Immutable.
class RelayPlan {
 public:
  /// Which copies a relay has to do with: those for the others than the node itself, or those of all.
  enum class Copies { of_others, of_all };
  /// `bytes`: by node, multiples of `unit`, (N-1) T < 2^63; nothing is cut but at multiples of `unit`. `worth`: differences that are less, or less
  /// than 1/64 of L, are left alone. May throw std::bad_alloc.
  RelayPlan(std::span<const std::int64_t> bytes, std::int64_t unit, std::int64_t worth, Copies copies = Copies::of_others);

  /// The nodes bring so nearly the same, or are so few, that it does not matter in which order who sends what: all goes straight. Always if they
  /// differ by one unit at most.
  bool even() const noexcept { return even_; }
  /// The stretches of a node's string, from its beginning to its end. The last one goes straight. Relays come in one order
  /// in all strings, each once at most.
  std::span<const Stretch> of(int node) const noexcept { return run(by_node_, begins_, node); }
  /// What a relay sends on, ascending by node.
  std::span<const Stretch> through(int relay) const noexcept { return run(by_relay_, relay_begins_, relay); }

 private:
  static std::span<const Stretch> run(const std::vector<Stretch>& all, const std::vector<std::size_t>& begins, int index) noexcept {
    const std::size_t first = begins[static_cast<std::size_t>(index)];
    return std::span(all).subspan(first, begins[static_cast<std::size_t>(index) + 1] - first);
  }

  bool even_ = true;
  std::vector<Stretch> by_node_, by_relay_;
  std::vector<std::size_t> begins_, relay_begins_;  ///< by node, and the end
};

}  // namespace bestride
