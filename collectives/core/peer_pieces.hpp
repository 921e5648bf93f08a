// SPDX-License-Identifier: Apache-2.0
#pragma once
// PeerPieces: what one rank sends to one rank of another node, according to a RelayPlan.
//
// Each pair of ranks that carry a common lane has its own order, the same on all members. No pair waits for another, so
// a node that is late or has more to send does not delay other pairs.
#include <cstdint>
#include <vector>

#include "collectives/core/hierarchy.hpp"
#include "collectives/core/pieces.hpp"
#include "collectives/core/relays.hpp"

namespace bestride::inline collectives {

/// A rank of another node, and the lanes that both this rank and that one carry.
struct Peer {
  int rank = 0, node = 0;
  Lanes lanes;
};

/// The peers of a rank of this node. `ahead`: the ranks that it sends to, in the order of nodes after this one; else
/// the ranks that it receives from, in the order of nodes before this one. May throw std::bad_alloc.
std::vector<Peer> peers_of(const Hierarchy& hierarchy, int local_rank, bool ahead);

/// The messages from one node to another. own: parts of its own vector, sent directly or to a relay. onward: parts that
/// it forwards as a relay.
enum class PeerMessage { own, onward };

class PeerPieces {
 public:
  /// Lanes are common to both ends. The plan outlives this object.
  PeerPieces(const RelayPlan& plan, PieceLayout cut, int from, int to, Lanes lanes, PeerMessage message) noexcept
      : relayed_ranges_(message == PeerMessage::own ? plan.of(from) : plan.through(from)),
        cut_(cut),
        to_(to),
        lanes_(lanes),
        message_(message),
        lane_(lanes.first) {}
  /// False if there are no more pieces. No piece is empty.
  bool next() noexcept;
  bool none() const noexcept { return !PeerPieces(*this).next(); }

  const RelayedRange& relayed_range() const noexcept { return relayed_ranges_[index_]; }
  int lane() const noexcept { return lane_; }
  Range range;  ///< of the vector of relayed_range().node

 private:
  std::span<const RelayedRange> relayed_ranges_;
  PieceLayout cut_;
  int to_;
  Lanes lanes_;
  PeerMessage message_;
  std::size_t index_ = 0;
  int lane_;
  std::int64_t piece_ = 0;
};

/// How much a rank of a relay may forward: in each range relayed by its node, the part of each lane that has arrived.
class RelayProgress {
 public:
  /// May throw std::bad_alloc.
  RelayProgress(std::size_t relayed_ranges, Lanes own)
      : own_(own), reached_(relayed_ranges * static_cast<std::size_t>(own.last - own.first)) {}
  void reach(const RelayedRange& relayed_range, int lane, Range range) noexcept {
    reached_[index(relayed_range, lane)] = range.last;
  }
  bool reached(const RelayedRange& relayed_range, int lane, Range range) const noexcept {
    return reached_[index(relayed_range, lane)] >= range.last;
  }

 private:
  std::size_t index(const RelayedRange& relayed_range, int lane) const noexcept {
    return static_cast<std::size_t>(relayed_range.index) * static_cast<std::size_t>(own_.last - own_.first) +
           static_cast<std::size_t>(lane - own_.first);
  }
  Lanes own_;
  std::vector<std::int64_t> reached_;
};

}  // namespace bestride::inline collectives
