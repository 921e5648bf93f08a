// SPDX-License-Identifier: Apache-2.0
#pragma once
// CommRegistry: what is known of each communicator: that it is valid, the distance to its ranks, its neighbors.
//
// A communicator is considered valid only after the MPI library has created it in an intercepted call or has accepted
// it in a call. So a call with an invalid communicator is left to MPI, which raises the error once; a query of ours
// would raise a second one. Entries are removed at MPI_Comm_free and MPI_Comm_disconnect.
#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

#include "interpose/mpi/handle_table.hpp"
#include "interpose/peers/locality.hpp"
#include "interpose/peers/peer_discovery.hpp"

namespace bestride::inline interpose {

struct Neighbors {
  bool known = false;  ///< the communicator has a virtual topology and it could be read
  std::vector<int> sources;
  std::vector<int> destinations;
};

/// How the ranks of a new communicator are related to those of the communicator that it is created from.
enum class ChildRanks {
  any,
  in_order,  ///< each member has the rank that it has there
  same,      ///< and all of them are members
};

/// What a higher room keeps for each communicator. It lies directly behind the entry and in the same allocation: an
/// allocation of its own could fail on one rank after the communicator was created, and would cost each call a load.
struct CommState {
  std::size_t bytes = 0;
  void (*construct)(void* place) noexcept = nullptr;
  void (*destroy)(void* state) noexcept = nullptr;
};

/// Whoever does not create one with `new` provides the memory for the state behind it.
class alignas(std::max_align_t) CommEntry {
 public:
  /// Call before the first entry is made; without it, entries have no state.
  static void set_state(const CommState& state) noexcept { state_ = state; }

  /// `made`: its creation was intercepted, or it is predefined (MPI_COMM_WORLD, MPI_COMM_SELF). If false, possibly only
  /// this rank knows the communicator.
  CommEntry(MPI_Comm comm, const Locality& locality, PeerDiscovery& peers, bool made) noexcept;
  /// The members of `parent`, an intra-communicator, have created `comm`.
  CommEntry(MPI_Comm comm, const CommEntry& parent, ChildRanks ranks) noexcept;
  ~CommEntry() {
    if (state_.destroy) state_.destroy(state());
  }
  static void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept;
  static void* operator new(std::size_t, void* place) noexcept { return place; }
  static void operator delete(void* entry) noexcept;

  /// True if the MPI library answered queries about the communicator.
  bool valid() const noexcept { return valid_; }
  bool made() const noexcept { return made_; }
  /// Rank and size in an intra-communicator; -1 and 0 for an inter-communicator.
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// True if it is known that its ranks are those of the communicator that it was created from.
  bool has_ranks_of_parent() const noexcept { return ranks_of_parent_; }
  /// Distance to `peer`; for MPI_ANY_SOURCE the distance to the farthest rank.
  Distance to(int peer) noexcept {
    if (peer == rank_) return Distance::self;
    return locality_.one_host() && !peers_.knows_groups() ? Distance::node : to_other(peer);
  }
  /// The peer's rank in MPI_COMM_WORLD; MPI_UNDEFINED if it is not a member (spawned processes) or unknown.
  int world_rank(int peer) noexcept;
  /// The ranks of all peers in MPI_COMM_WORLD, by rank. May throw std::bad_alloc.
  std::vector<int> world_ranks() {
    std::vector<int> ranks;
    for (int peer = 0; peer < size_; ++peer) ranks.push_back(world_rank(peer));
    return ranks;
  }
  /// Neighbors in the order used by neighbor collectives, with MPI_PROC_NULL at non-periodic boundaries of a
  /// Cartesian grid. Read at the first call.
  const Neighbors& neighbors() noexcept;

  void* state() noexcept { return reinterpret_cast<std::byte*>(this) + sizeof *this; }
  const void* state() const noexcept { return reinterpret_cast<const std::byte*>(this) + sizeof *this; }

 private:
  static constinit inline CommState state_;

  Distance to_other(int peer) noexcept;
  void read_world_ranks();
  void read_neighbors();
  Distance farthest() noexcept;

  const MPI_Comm comm_;
  const Locality& locality_;
  PeerDiscovery& peers_;
  const bool made_;
  bool valid_ = false;
  bool ranks_of_parent_ = false;
  int inter_ = 0;
  std::once_flag world_ranks_read_;
  std::vector<int> world_ranks_;  ///< ranks in MPI_COMM_WORLD of all peers; read when first needed
  std::once_flag neighbors_read_;
  Neighbors neighbors_;
  std::atomic<int> farthest_{-1};  ///< a Distance, or -1: not determined yet
  // Beside the state, which calls need together with these.
  int rank_ = -1;  ///< -1 on an inter-communicator: no peer is this rank
  int size_ = 0;   ///< 0 on an inter-communicator
};

class CommRegistry {
 public:
  CommEntry* find(MPI_Comm comm) const noexcept { return table_.find(comm); }
  /// The MPI library has just created `comm`.
  void made(MPI_Comm comm) noexcept;
  /// Memory for the entry of a communicator that all members of another one are about to create; nullptr: there is
  /// none.
  void* reserve() noexcept;
  void give_back(void* reserved) noexcept { CommEntry::operator delete(reserved); }
  /// The members of `parent`, an intra-communicator, have created `comm`. `reserved`: by reserve(), for this call.
  /// Returns the entry; nullptr: the library did not answer queries.
  CommEntry* made(MPI_Comm comm, void* reserved, const CommEntry& parent, ChildRanks ranks) noexcept;
  /// The MPI library has accepted `comm` in a call.
  void add_valid(MPI_Comm comm) noexcept {
    if (!table_.find(comm)) insert(comm, comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF);
  }
  /// Called before `comm` is freed: removes its entry and returns it; nullptr if there is none.
  CommEntry* extract(MPI_Comm comm) noexcept { return table_.remove(comm); }
  /// Inserts an extracted entry again, because the communicator was not freed.
  void put_back(MPI_Comm comm, CommEntry* entry) noexcept;
  /// Removes all entries. No thread may be in an MPI call.
  void clear() noexcept {
    table_.clear([](CommEntry* entry) { delete entry; });
  }
  /// True if there was no memory for some communicator. Then a communicator that this rank does not know, or whose
  /// creation it did not record, may be known to its other members.
  bool incomplete() const noexcept { return incomplete_.load(std::memory_order_relaxed); }
  void mark_incomplete() noexcept { incomplete_.store(true, std::memory_order_relaxed); }

 private:
  void insert(MPI_Comm comm, bool made) noexcept;
  HandleTable<MPI_Comm, CommEntry> table_;
  std::atomic<bool> incomplete_{false};
};

}  // namespace bestride::inline interpose
