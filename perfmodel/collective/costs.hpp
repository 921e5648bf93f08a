// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predicts the cost of a collective over links of a given speed: in the hierarchical form, and as the MPI library's own
// algorithms send it.
//
// The model adds the costs of bytes on the busiest link of a node, steps, messages, and copies within the node. It uses
// only + - * / and comparisons of doubles, and no function of libm, whose last bit may depend on the CPU: all members
// of a communicator must come to the same decision. Alternative considered: measured curves only, which need too many
// points (nodes x ranks x placement x bytes); measurements correct the model instead (perfmodel/collective/choice.hpp).
#include <cstdint>

#include "perfmodel/collective/shape.hpp"

namespace bestride::inline perfmodel {

/// Seconds, or seconds per byte; positive.
struct LinkCosts {
  double latency_s;      ///< a short message between nodes, one direction
  double overhead_s;     ///< cost to the sender of one more concurrent message
  double wire_byte_s;    ///< per byte over a node's link, in each direction, with both directions busy and all ranks of
                         ///< the node sending
  double stream_byte_s;  ///< the same with one rank sending; not less than wire_byte_s
  double copy_byte_s;    ///< per byte that a rank copies in memory while the other ranks of its node also copy
  double node_sync_s;    ///< one synchronization of all ranks of a node
  /// Message size in bytes with which a long exchange over this link is fastest; 0: not measured. It marks where the
  /// MPI library changes from the eager to the rendezvous protocol; the collectives do not need to know the protocols.
  std::int64_t piece_bytes = 0;

  /// Values for machines without calibration: 10 Gbit/s Ethernet less its headers (1500-byte frames carry 0.956 of the
  /// line rate), which one rank can fill; 30 us; copies at 3 GB/s for each rank while the other ranks of its node copy.
  /// None was measured. Slow copies and a fast network that one rank of a node can fill make the hierarchy look
  /// expensive, which is the conservative assumption.
  static LinkCosts built_in() noexcept;
  /// Seconds per byte over a node's link while `streams` ranks of the node send.
  double wire_of(double streams) const noexcept {
    const double shared = stream_byte_s / (streams < 1 ? 1 : streams);
    return shared > wire_byte_s ? shared : wire_byte_s;
  }
};

/// How the bytes between nodes are divided: each rank sends its slice in chunks, `in_flight` of them at a time.
struct ChunkPlan {
  std::int64_t chunk_bytes = 0;
  int in_flight = 2;
};

/// Number of messages of `bytes` bytes that a rank sends at a time: 128 KiB in total, at least two and at most eight
/// messages. Only few long messages, because UCX advances all pending rendezvous sends together, so that a pipeline of
/// many does not overlap (a broadcast over 4 x 2 ranks at 50 Mbit/s took 2.38 times the network limit with all chunks
/// posted, 1.31 with two). Eight messages of 16 KiB took 1.05 to 1.2 times the limit in all collectives, from 4 x 2
/// ranks at 50 Mbit/s to 2 x 2 at 1 Gbit/s; two of 64 KiB and more took 1.2 to 1.6.
int messages_in_flight(std::int64_t bytes) noexcept;
/// Decides which of the sends from one rank to another are synchronous, so that at most `most` bytes are sent without
/// the sender knowing that they were received. Without the limit, eager messages take memory on a late receiver and
/// fill the link with data that is needed later.
class Unacknowledged {
 public:
  static constexpr std::int64_t most = 32 * 1024;
  /// True if the next send, of `bytes` bytes, has to be synchronous. Called once before each send.
  bool synchronous(std::int64_t bytes) noexcept {
    sent_ += bytes;
    if (sent_ < most) return false;
    sent_ = 0;
    return true;
  }

 private:
  std::int64_t sent_ = 0;  ///< bytes since the last synchronous send
};

/// The chunk size is what a rank's share of the link carries in 20 ms, rounded down to a power of two between 64 KiB
/// and 4 MiB, and at most LinkCosts::piece_bytes if that was measured. The 20 ms are for a rank that was descheduled:
/// it returns after some milliseconds, and until then the chunks in flight must keep the link busy (of messages sent by
/// rendezvous, 128 KiB were good at 50 to 200 Mbit/s and lost a factor of 2.2 at 1 Gbit/s on busy cores). A chunk is
/// not longer than the slice. In a chain of nodes (broadcast, reduce) a chunk is at most a quarter of the slice, and so
/// small that the last of many nodes waits for at most an eighth of it (4 x 2 ranks, 4 MiB at 50 Mbit/s: 1.81 times the
/// network limit with a quarter), but this rule does not go below 64 KiB.
ChunkPlan plan_chunks(const CollectiveShape& shape, const LinkCosts& link) noexcept;

struct CollectiveCost {
  double seconds = 0;
  double wire_bytes = 0;  ///< over the busiest link of a node, in its busier direction
};

/// Bytes that must cross the busiest link of a node in one direction with any algorithm. 0 for one node.
double wire_lower_bound(const CollectiveShape& shape) noexcept;

/// The cost in the hierarchy. Every byte crosses the link once, in one slice for each rank. Within the node bytes go
/// through shared memory, overlapped with the network chunk by chunk.
CollectiveCost hierarchical_cost(const CollectiveShape& shape, const LinkCosts& link) noexcept;

/// The cost with the algorithms of MPICH 4: its choice of algorithm by size and number of ranks, and the bytes that
/// each algorithm sends over the network (perfmodel/collective/library_costs.cpp).
CollectiveCost library_cost(const CollectiveShape& shape, const LinkCosts& link) noexcept;

}  // namespace bestride::inline perfmodel
