// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sharing: every rank has its part of its node's string; in the end every rank has all strings. An allgather, and an allreduce's second half.
//
// Each node's string leaves it once for every other node, a slice on every lane, straight to where it is needed: (N-1)/N of the result
// in and out of every node, the lower bound. Between nodes that bring unequally many bytes a part goes through other nodes, to the lower bound
// again (relays). Inside the node all goes through the channels: one copy in, one copy out on each rank.
//
// Each pair of ranks has its own messages under way at the same time, the nearest nodes' first, up to 16 pairs a rank. Alternative that lost: node n
// sends to n+t in the t-th step, with one window over all. Whoever is late then has two nodes send to it at a time, and another one none
// (3 x 2 ranks, 4 MiB at 200 Mbit/s: 1.17 to 1.27 of the limit in steps, 1.05 in pairs).
//
// It can't come to a standstill, with any number of messages in flight: what a node has itself waits, in a pair, for nothing but what nodes have themselves
// in pairs before it, in the order of steps, at either end; so the first that has not ended can always go on, and all end. What is relayed waits
// for that, and for what is relayed before it in the same order.
#include "collectives/hierarchy.hpp"
#include "collectives/strand.hpp"
#include "collectives/strings.hpp"

namespace bestride {

/// Keeps what this rank receives, while it is at hand.
class Kept {
 public:
  /// A piece of another node's string, in the order in which they arrive. `data` holds during the call only.
  virtual void keep(int node, Range range, const std::byte* data) noexcept = 0;

 protected:
  ~Kept() = default;
};

/// A shorter form of pieces, for the wire. A message shorter than its piece is in that form, one of the same length is the piece itself.
class PieceCode {
 public:
  /// Writes the shorter form of a piece of a node's string, its own or one that it sends on, to `out`, which has room for one byte less than
  /// the piece, and returns its size. 0: there is none.
  virtual std::int64_t encode(int node, Range range, const std::byte* piece, std::byte* out) noexcept = 0;
  /// The piece of another node's string from its shorter form, which does not overlap it. False: no such form.
  virtual bool decode(int node, Range range, const std::byte* encoded, std::int64_t bytes, std::byte* piece) noexcept = 0;

 protected:
  ~PieceCode() = default;
};

/// `strings`: this rank's part of its own node's string is filled in; the rest will be. Cut at multiples of `unit` bytes.
/// `kept` may be nullptr; `code` too, on all members alike. All outlive the strand. What can't be decoded fails it.
Strand share(Hierarchy& hierarchy, const NodeStrings& strings, Pace pace, std::int64_t unit = 1, Kept* kept = nullptr, PieceCode* code = nullptr);

}  // namespace bestride
