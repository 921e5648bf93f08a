// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a collective costs over links of a given speed: hierarchical, and as MPI's own algorithms send it.
//
// Additive: bytes on the fullest link of a node, steps, messages, copies in the node. Only + - * / and comparisons of doubles, no
// function of libm, whose last bit may depend on the CPU: members of one communicator must come to the same decision.
// Alternative that lost: measured curves only. Nodes x ranks x placement x bytes are too many points; measurements correct this
// instead (collective_choice.hpp).
#include <cstdint>

#include "perfmodel/collective_shape.hpp"

namespace bestride {

/// Seconds, or seconds a byte; positive.
struct LinkCosts {
  double latency_s;        ///< a short message between nodes, one way
  double overhead_s;       ///< what one more message at the same time costs its sender
  double wire_byte_s;      ///< a byte of a node's link, either way, both ways busy, all ranks of the node sending
  double stream_byte_s;    ///< the same with one rank sending: not less
  double copy_byte_s;      ///< a byte a rank copies from memory to memory while the others of its node do the same
  double node_sync_s;      ///< all ranks of a node wait for each other once
  /// Bytes of a message in which a long exchange over this link is fastest; 0: not measured. It is where MPI libraries change from sending at once to
  /// asking first, which the collectives need not know by name.
  std::int64_t piece_bytes = 0;

  /// For machines that were never calibrated: 10 Gbit/s Ethernet without its headers (1500-byte frames carry 0.956 of the line rate), which one
  /// rank fills alone; 30 us; copies of 3 GB/s a rank while its node's others copy, too. None of these was measured: slow copies, a fast wire
  /// and leaders that fill it make the hierarchy look dear, which is the cautious side.
  static LinkCosts built_in() noexcept;
  /// Seconds a byte of a node's link with so many ranks of the node sending at once.
  double wire_of(double streams) const noexcept {
    const double shared = stream_byte_s / (streams < 1 ? 1 : streams);
    return shared > wire_byte_s ? shared : wire_byte_s;
  }
};

/// How the bytes between nodes are cut: each rank's slice goes in chunks, `in_flight` sends of them at a time.
struct ChunkPlan {
  std::int64_t chunk_bytes = 0;
  int in_flight = 2;
};

/// Messages of so many bytes that a rank sends at a time: 128 KiB, at least two and at most eight. Not many of the long ones: UCX advances all
/// pending rendezvous sends together, so that a pipeline of many does not pipeline (a broadcast over 4 x 2 ranks at 50 Mbit/s took 2.38 times
/// the wire limit with all chunks posted, 1.31 with two). Eight of 16 KiB took 1.05 to 1.2 times the limit in all collectives, 4 x 2 ranks at 50
/// Mbit/s to 2 x 2 at 1 Gbit/s, where two of 64 KiB and more took 1.2 to 1.6.
int messages_in_flight(std::int64_t bytes) noexcept;
/// Which of the sends from one rank to another are synchronous: it goes on until so many bytes may not have been taken there, and learns of it so. What is
/// sent at once takes memory of a receiver that is late, and fills the link with what is needed later.
class Unacknowledged {
 public:
  static constexpr std::int64_t most = 32 * 1024;
  /// Asked once before each send.
  bool synchronous(std::int64_t bytes) noexcept {
    sent_ += bytes;
    if (sent_ < most) return false;
    sent_ = 0;
    return true;
  }

 private:
  std::int64_t sent_ = 0;  ///< since the last synchronous one
};

/// LinkCosts::piece_bytes where that was measured, and never more than what 20 ms of a rank's share of the link carry, as a power of two between 64
/// KiB and 4 MiB: a rank that lost its processor comes back after some milliseconds, and until then the chunks in flight have to feed the
/// link (of messages that ask first, 128 KiB were good at 50 to 200 Mbit/s and lost a factor of 2.2 at 1 Gbit/s on busy cores). Not more than the slice; of what goes through a chain of nodes
/// (broadcast, reduce) a quarter of it, and so little that the last of many nodes waits for an eighth of it at most (4 x 2 ranks, 4 MiB at 50
/// Mbit/s: 1.81 times the wire limit with a quarter), but not less than 64 KiB for that.
ChunkPlan plan_chunks(const CollectiveShape& shape, const LinkCosts& link) noexcept;

struct CollectiveCost {
  double seconds = 0;
  double wire_bytes = 0;  ///< over the fullest link of a node in its fuller direction
};

/// What has to cross the fullest link of a node in one direction, whatever the algorithm. With one node 0.
double wire_lower_bound(const CollectiveShape& shape) noexcept;

/// Every byte crosses the link once, in a slice a rank; in the node through shared memory, overlapped with the wire chunk by chunk.
CollectiveCost hierarchical_cost(const CollectiveShape& shape, const LinkCosts& link) noexcept;

/// As MPICH 4 sends it: its choice of algorithm by size and number of ranks, and what each puts on the wire (collective_library.cpp).
CollectiveCost library_cost(const CollectiveShape& shape, const LinkCosts& link) noexcept;

}  // namespace bestride
