// SPDX-License-Identifier: Apache-2.0
#pragma once
// PairPieces: what one rank sends one rank of another node, where a RelayPlan says what goes which way.
//
// Every pair of ranks that carry a common lane has its own order, and none waits for another pair: nodes that have more to send, or are late, and
// others never keep step. The same order on all members.
#include <cstdint>
#include <vector>

#include "collectives/hierarchy.hpp"
#include "collectives/pieces.hpp"
#include "collectives/relays.hpp"

namespace bestride {

/// A rank of another node, and the lanes that it carries as well as the rank it was made for.
struct Peer {
  int rank = 0, node = 0;
  Lanes lanes;
};

/// Of a rank of this node: those it sends to (`ahead`: of the next node, then of the one after that), or receives from (of the node before it first).
/// May throw std::bad_alloc.
std::vector<Peer> peers_of(const Hierarchy& hierarchy, int local_rank, bool ahead);

/// What goes from a node to another: parts of its own string, straight or to a relay; or what it sends on as a relay.
enum class Leg { own, onward };

class PairPieces {
 public:
  /// Lanes are common to both ends. The plan outlives this.
  PairPieces(const RelayPlan& plan, Cut cut, int from, int to, Lanes lanes, Leg leg) noexcept
      : stretches_(leg == Leg::own ? plan.of(from) : plan.through(from)), cut_(cut), to_(to), lanes_(lanes), leg_(leg), lane_(lanes.first) {}
  /// False: there are no more. None is empty.
  bool next() noexcept;
  bool none() const noexcept { return !PairPieces(*this).next(); }

  const Stretch& stretch() const noexcept { return stretches_[index_]; }
  int lane() const noexcept { return lane_; }
  Range range;  ///< of the string of stretch().node

 private:
  std::span<const Stretch> stretches_;
  Cut cut_;
  int to_;
  Lanes lanes_;
  Leg leg_;
  std::size_t index_ = 0;
  int lane_;
  std::int64_t piece_ = 0;
};

/// How far the onward legs of a relay's rank may go: up to where the lanes of what goes through its node have come.
class RelayProgress {
 public:
  /// May throw std::bad_alloc.
  RelayProgress(std::size_t stretches, Lanes own) : own_(own), reached_(stretches * static_cast<std::size_t>(own.last - own.first)) {}
  void reach(const Stretch& stretch, int lane, Range range) noexcept { reached_[index(stretch, lane)] = range.last; }
  bool reached(const Stretch& stretch, int lane, Range range) const noexcept { return reached_[index(stretch, lane)] >= range.last; }

 private:
  std::size_t index(const Stretch& stretch, int lane) const noexcept {
    return static_cast<std::size_t>(stretch.place) * static_cast<std::size_t>(own_.last - own_.first) + static_cast<std::size_t>(lane - own_.first);
  }
  Lanes own_;
  std::vector<std::int64_t> reached_;
};

}  // namespace bestride
