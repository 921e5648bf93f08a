// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which rank waits for which: the wait-for graph of the ranks of a job, from one snapshot of each.
//
// A thread in a blocking call waits for conditions; a condition waits for all of its ranks, or for any of them (AND and
// OR edges). Which ranks follows from the matching rules of MPI: a collective call is identified by its communicator
// and its ordinal there, because all members make the same collective calls in the same order (MPI-4.1, 6.14); a
// message by its peer. A send and a receive that match are being transferred: neither end waits for the other one to
// call anything. Pure: no clock, no I/O. The snapshots of a running job are not from the same time, so only what is the
// same in two of them counts. Which messages of a call with several are complete follows, as far as it can, from their
// numbers (message_numbers.hpp).
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "telemetry/record/snapshot.hpp"
#include "telemetry/waits/rank_set.hpp"

namespace bestride::inline telemetry {

enum class WaitKind : std::uint8_t { all, any };

struct WaitCondition {
  WaitKind kind = WaitKind::all;
  RankSet ranks;  ///< in MPI_COMM_WORLD; empty: of no rank whose state is known
  /// False: MPI does not require these ranks, but the library may, as in a broadcast along a tree, or for a short
  /// MPI_Isend that may be complete.
  bool required = true;
  /// The peer in `ranks` has posted the matching operation and is in MPI, too: a transfer, for which nobody has to call
  /// anything. Not required.
  bool matched = false;
  /// Outside MPI, for a mutex or for the lock of a file that this rank holds.
  bool holds_lock = false;
  bool receives = false;    ///< it waits for an incoming message, not for an outgoing one
  std::int32_t unseen = 0;  ///< ranks that may be waited for, too, but have no record here
  std::uint16_t function = no_function;
  std::uint64_t communicator = 0;  ///< uid; 0: not known
  std::uint32_t ordinal = 0;       ///< of a collective call; 0: a message
  bool operator==(const WaitCondition&) const = default;
  bool names(std::int32_t rank) const noexcept { return ranks.contains(rank); }
};

/// A thread in a blocking call.
struct ThreadWait {
  unsigned slot = 0;
  WaitKind kind = WaitKind::all;  ///< MPI_Waitany and MPI_Waitsome: any of the conditions
  std::vector<WaitCondition> conditions;
  bool resolved = true;  ///< false: it may also wait for something that is not in `conditions`
  bool polling = false;  ///< not in a call, but it makes only polling calls that find nothing
  bool may_end = false;  ///< outside MPI, for a lock that another thread of its holder may release
  bool probing = false;  ///< it polls for messages only, without requests, and may look for other events, too
  /// The other rank that is the peer of all unmatched messages of the call, each of which may be complete: one of them
  /// is not, or the call would have returned. no_rank: there is no such rank.
  std::int32_t only_peer = no_rank;
};

/// Which conditions a walk over the graph follows.
enum class Edges : std::uint8_t {
  required,   ///< those that certainly hold up the rank
  unmatched,  ///< all but transfers
};
inline bool follows(Edges edges, const WaitCondition& condition) noexcept {
  return !condition.ranks.empty() && (condition.required || (edges == Edges::unmatched && !condition.matched));
}

struct RankWaits {
  std::size_t snapshot = 0;  ///< index in the argument of find_waits()
  std::int32_t rank = -1;
  double seconds = 0;  ///< since the call began in which a thread waits longest
  bool gone = false;
  bool every_thread_waits = false;  ///< false: a thread outside MPI may yet do what others wait for
  std::vector<ThreadWait> threads;  ///< those in blocking calls, or polling

  /// True if a condition names a rank that has to do something.
  bool waits() const noexcept {
    for (const ThreadWait& thread : threads)
      for (const WaitCondition& condition : thread.conditions)
        if (!condition.ranks.empty() && !condition.matched) return true;
    return false;
  }
};

/// Calls visit(RankSet) for the ranks that `waits` certainly needs: not for one of several alternatives, and not only
/// because of the library's algorithm.
template <class Visit>
void each_needed(const RankWaits& waits, Visit visit) {
  for (const ThreadWait& thread : waits.threads) {
    if (thread.kind == WaitKind::any && thread.conditions.size() > 1) continue;
    for (const WaitCondition& condition : thread.conditions)
      if (condition.required && condition.kind == WaitKind::all && !condition.ranks.empty()) visit(condition.ranks);
  }
}

/// Members of a communicator have made different calls as their collective call of the same ordinal.
struct CollectiveMismatch {
  struct Variant {
    std::uint16_t function = no_function;
    std::int32_t root = no_rank;
    std::uint64_t bytes = 0;          ///< of the calls in which all ranks give the same; 0: not known
    std::uint16_t reduction = 0;      ///< reduction_code(); 0: not known
    std::vector<std::int32_t> ranks;  ///< in MPI_COMM_WORLD, ascending
  };
  std::uint64_t communicator = 0;  ///< uid
  std::string name;                ///< of the communicator
  std::uint32_t ordinal = 0;
  std::vector<Variant> variants;  ///< the one of most ranks first
  /// Not 0: one of the calls from this ordinal to `ordinal` differed. Which is not known: only `ranks` of the variants.
  std::uint32_t first = 0;
  /// Bytes that two ranks of MPI_COMM_WORLD give for what one sends to the other. Then all are in one variant.
  struct Pair {
    std::int32_t from = -1, to = -1;
    std::uint32_t sent = 0, expected = 0;
  };
  std::vector<Pair> pairs;
  std::vector<std::int32_t> culprits;  ///< ascending; empty: those of all variants but the most frequent one
};

struct WaitGraph {
  std::vector<RankWaits> ranks;  ///< ascending; one for each rank; of several snapshots of a rank the first alive one
  std::vector<CollectiveMismatch> mismatches;

  /// Null if there is no record of it.
  const RankWaits* find(std::int32_t rank) const noexcept;
  /// The index of an element of `ranks`.
  std::size_t position(const RankWaits& waits) const noexcept {
    return static_cast<std::size_t>(&waits - ranks.data());
  }
  /// The unmatched condition by which `waiter` waits for `target`, preferably a required one, and one
  /// of all its ranks; null if there is none.
  const WaitCondition* edge(std::int32_t waiter, std::int32_t target) const noexcept;
  /// True if `waiter` needs `target`, as each_needed() has it, or as its only_peer.
  bool needs(std::int32_t waiter, std::int32_t target) const noexcept;
};

/// `job`: the ranks of one MPI_COMM_WORLD. Those before MPI_Init are left out. A rank that has ended waits for nobody;
/// if all have ended, the graph is the last one of the job, in which none of them is gone.
WaitGraph find_waits(std::span<const RankSnapshot> job);

}  // namespace bestride::inline telemetry
