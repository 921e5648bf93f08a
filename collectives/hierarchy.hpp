// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hierarchy: what one rank needs for the collectives of one communicator: who shares a node, the memory they share, the wire to the
// others, and room for what is under way.
//
// Made by all members together, and the same numbers on all of them. Collectives of one hierarchy are carried on one after the other, in
// the order in which the program called them; a rank may end one while others are still at it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "collectives/channels.hpp"
#include "collectives/lanes.hpp"
#include "collectives/transport.hpp"
#include "model/topology.hpp"

namespace bestride {

/// How pieces are cut and how many are under way. Equal on all members.
struct Pace {
  std::int64_t piece = 256 * 1024;  ///< bytes of a piece at most; at most a slot
  int in_flight = 2;                ///< messages that one rank sends at a time
  std::int64_t whole = 16 * 1024;   ///< exchange: what one node has for another, if shorter than this, is carried by one rank
  /// share, combine: bytes of the busiest link up to which the nodes' differences are left alone. What one more hop takes.
  std::int64_t uneven = 32 * 1024;

  /// Pieces where a relay waits for each of them, or several pairs of ranks share the link: so many to the longest slice of `bytes`, but none for that
  /// under 16 KiB (3, 1 and 2 ranks, 4 MiB at 200 Mbit/s, pieces of 128, 32 and 16 KiB: allgather 1.27, 1.11 and 1.20 of the limit, reduce-scatter 1.48, 1.27 and 1.03; an allgather's
  /// bytes were 1.022 of the least with a 16th of a slice, about 30 KiB, and 1.014 with a 10th).
  Pace finer(std::int64_t bytes, int pieces) const noexcept {
    Pace pace = *this;
    pace.piece = std::min(piece, std::max<std::int64_t>(16 * 1024, bytes / pieces));
    return pace;
  }
};

class Hierarchy {
 public:
  /// Bytes for what is under way, reserved once: a collective must not fail halfway for want of memory. Pages are taken as they are used.
  static constexpr std::int64_t staging_bytes = 32 << 20;
  static constexpr std::int64_t kept_bytes = 8 << 20;

  /// `wire` and the channels' memory outlive this. May throw std::bad_alloc.
  Hierarchy(Topology topology, int rank, Transport& wire, Channels channels);
  ~Hierarchy();
  Hierarchy(const Hierarchy&) = delete;
  Hierarchy& operator=(const Hierarchy&) = delete;

  const Topology& topology() const noexcept { return topology_; }
  int rank() const noexcept { return rank_; }
  int nodes() const noexcept { return topology_.nodes(); }
  int node() const noexcept { return node_; }
  int local_rank() const noexcept { return local_rank_; }
  int local_ranks() const noexcept { return local_ranks_; }
  int lanes() const noexcept { return topology_.most_on_a_node(); }
  Lanes own_lanes() const noexcept { return lanes_of(local_rank_, local_ranks_, lanes()); }
  /// Of all ranks of all nodes.
  int most_lanes() const noexcept { return (lanes() + topology_.least_on_a_node() - 1) / topology_.least_on_a_node(); }
  /// The rank that carries `lane` on `node`; and on this node, its local rank.
  int carrier(int node, int lane) const noexcept { return bestride::carrier(topology_, node, lane); }
  int local_carrier(int lane) const noexcept { return carrier_of(lane, local_ranks_, lanes()); }

  Transport& wire() noexcept { return wire_; }
  Channels& channels() noexcept { return channels_; }
  const Channels& channels() const noexcept { return channels_; }
  /// staging_bytes of memory for the collective that is under way.
  std::byte* staging() noexcept { return staging_; }
  /// kept_bytes of memory beside it, for what one half of a collective leaves for the other.
  std::byte* kept() noexcept { return staging_ + staging_bytes; }

 private:
  Topology topology_;
  int rank_, node_, local_rank_, local_ranks_;
  Transport& wire_;
  Channels channels_;
  std::byte* staging_;  ///< and what is kept behind it
};

}  // namespace bestride
