// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hierarchy: what one rank needs for the collectives of one communicator: the topology, the memory that the ranks of a
// node share, the transport between nodes, and staging memory.
//
// All members construct it together, with the same numbers. Collectives of one hierarchy run one after the other, in
// the order in which the program called them. Ranks may complete a collective at different times.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "collectives/core/channels.hpp"
#include "collectives/core/lanes.hpp"
#include "collectives/core/transport.hpp"
#include "model/topology.hpp"

namespace bestride::inline collectives {

/// Piece size and number of messages in flight. Equal on all members.
struct PipelineSettings {
  std::int64_t piece = 256 * 1024;  ///< largest piece, in bytes; at most a slot
  int in_flight = 2;                ///< messages that one rank sends at a time
  std::int64_t whole = 16 * 1024;   ///< alltoall: a shorter vector between two nodes is carried by a single rank
  /// allgather, reduce to owners: differences between nodes that cost the busiest link fewer bytes than this are
  /// ignored. These bytes take about as long as one more hop.
  std::int64_t uneven = 32 * 1024;

  /// Settings with shorter pieces, for collectives in which a relay waits for each piece or several pairs of ranks
  /// share the link. The longest slice, of `bytes` bytes, is cut into `pieces` pieces, but not into pieces shorter than
  /// 16 KiB. Measured with 3, 1 and 2 ranks, 4 MiB at 200 Mbit/s, pieces of 128, 32 and 16 KiB: allgather 1.27, 1.11
  /// and 1.20 times the limit, reduce-scatter 1.48, 1.27 and 1.03 times. An allgather sent 1.022 times the least bytes
  /// with a 16th of a slice (about 30 KiB) and 1.014 times with a 10th.
  PipelineSettings finer(std::int64_t bytes, int pieces) const noexcept {
    PipelineSettings pipeline = *this;
    pipeline.piece = std::min(piece, std::max<std::int64_t>(16 * 1024, bytes / pieces));
    return pipeline;
  }
};

class Hierarchy {
 public:
  /// Staging memory in bytes. It is reserved once, so that an allocation failure can't stop a collective halfway. Pages
  /// are allocated on first use.
  static constexpr std::int64_t staging_bytes = 32 << 20;
  static constexpr std::int64_t intermediate_bytes = 8 << 20;

  /// `transport` and the memory of the channels outlive this object. May throw std::bad_alloc.
  Hierarchy(Topology topology, int rank, Transport& transport, Channels channels);
  ~Hierarchy();
  Hierarchy(const Hierarchy&) = delete;
  Hierarchy& operator=(const Hierarchy&) = delete;

  const Topology& topology() const noexcept { return topology_; }
  int rank() const noexcept { return rank_; }
  int nodes() const noexcept { return topology_.nodes(); }
  int node() const noexcept { return node_; }
  int local_rank() const noexcept { return local_rank_; }
  int local_ranks() const noexcept { return local_ranks_; }
  int lanes() const noexcept { return topology_.max_ranks_per_node(); }
  Lanes own_lanes() const noexcept { return lanes_of(local_rank_, local_ranks_, lanes()); }
  /// The largest number of lanes that any rank of any node carries.
  int max_lanes() const noexcept {
    return (lanes() + topology_.min_ranks_per_node() - 1) / topology_.min_ranks_per_node();
  }
  /// carrier(): the rank of the communicator that carries `lane` on `node`. local_carrier(): the local rank that
  /// carries it on this node.
  int carrier(int node, int lane) const noexcept { return bestride::carrier(topology_, node, lane); }
  int local_carrier(int lane) const noexcept { return carrier_of(lane, local_ranks_, lanes()); }

  Transport& transport() noexcept { return transport_; }
  Channels& channels() noexcept { return channels_; }
  const Channels& channels() const noexcept { return channels_; }
  /// staging_bytes of memory for the current collective.
  std::byte* staging() noexcept { return staging_; }
  /// intermediate_bytes of separate memory, for data that the first half of a collective leaves for the second half.
  std::byte* intermediate() noexcept { return staging_ + staging_bytes; }

 private:
  Topology topology_;
  int rank_, node_, local_rank_, local_ranks_;
  Transport& transport_;
  Channels channels_;
  std::byte* staging_;  ///< staging memory, followed by the kept memory
};

}  // namespace bestride::inline collectives
