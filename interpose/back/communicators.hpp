// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is remembered of a communicator: that it is valid, how far its ranks are, who its neighbours are.
//
// A communicator is taken to be valid only after the MPI library has accepted or made it: so MPI_Pack with an invalid one stays
// MPI's error without a question of ours that could itself raise one. Removed at Comm_free and Comm_disconnect.
#include <mpi.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "interpose/back/handle_table.hpp"
#include "interpose/back/hierarchical/communicator.hpp"
#include "interpose/back/locality.hpp"

namespace bestride {

struct Neighbours {
  bool known = false;  ///< the communicator has a topology and it could be read
  std::vector<int> sources;
  std::vector<int> destinations;
};

class CommEntry {
 public:
  /// `comm` must be valid.
  CommEntry(MPI_Comm comm, const Locality& locality) noexcept;

  /// Of an intra-communicator; else -1 and 0.
  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  /// MPI_ANY_SOURCE: the farthest rank.
  Distance to(int peer) noexcept {
    if (peer == rank_) return Distance::self;
    return locality_.one_host() ? Distance::node : to_far(peer);
  }
  /// The peer's rank in MPI_COMM_WORLD, or MPI_UNDEFINED: not in it (spawned processes), or not known.
  int world_rank(int peer) noexcept;
  /// In the order of the neighbour collectives. MPI_PROC_NULL stands where a Cartesian grid ends. Read at the first call.
  const Neighbours& neighbours() noexcept;

  CommCollectives collectives;

 private:
  Distance to_far(int peer) noexcept;
  void read_world_ranks();
  void read_neighbours();
  Distance farthest() noexcept;

  const MPI_Comm comm_;
  const Locality& locality_;
  int inter_ = 0;
  int rank_ = -1;  ///< -1 on an inter-communicator: no peer is this rank
  int size_ = 0;   ///< 0 on an inter-communicator
  std::once_flag world_ranks_read_;
  std::vector<int> world_ranks_;  ///< of every peer; read at the first call that needs them
  std::once_flag neighbours_read_;
  Neighbours neighbours_;
  std::atomic<int> farthest_{-1};  ///< a Distance, or -1: not looked up yet
};

class CommRegistry {
 public:
  CommEntry* find(MPI_Comm comm) const noexcept { return table_.find(comm); }
  /// The MPI library has just made `comm`.
  void made(MPI_Comm comm) noexcept {
    remove(comm);
    insert(comm);
  }
  /// The MPI library has accepted `comm` in a call.
  void note(MPI_Comm comm) noexcept {
    if (!table_.find(comm)) insert(comm);
  }
  void remove(MPI_Comm comm) noexcept;
  /// Forgets all. No thread is in a call.
  void clear() noexcept {
    table_.clear([](CommEntry* entry) { delete entry; });
  }

 private:
  void insert(MPI_Comm comm) noexcept;
  HandleTable<MPI_Comm, CommEntry> table_;
};

}  // namespace bestride
