// SPDX-License-Identifier: Apache-2.0
#pragma once
// PeerDiscovery: determines which ranks on this host have the preload and therefore unpack what this rank packs.
//
// A packed message that may be split inside a basic element may only be sent to a rank that receives it as packed bytes
// (objects/plan.cpp gives the reason). A job in which only some ranks have the preload must run, so discovery uses no
// collective and never waits. Before MPI_Init every rank binds an abstract Unix datagram socket whose name contains the
// job's identity on this host and the rank. After MPI_Init every rank of the job has done so, and connecting to a name
// tells whether that peer has the preload. The name disappears with the process, also after SIGKILL, and needs no file
// system. Any failure means "not present", and the message is left to MPI. Alternative considered: a collective in
// MPI_Init, which hangs a job with an unpreloaded rank.
//
// A rank that knows which last-level cache, NUMA domain and socket its processors belong to binds one more name for
// each of these, which contains its number. A rank tests whether a peer shares its cache by connecting to the name that
// the peer would then have.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "model/processor_groups.hpp"

namespace bestride::inline interpose {

class PeerDiscovery {
 public:
  PeerDiscovery() = default;
  ~PeerDiscovery();
  PeerDiscovery(const PeerDiscovery&) = delete;
  PeerDiscovery& operator=(const PeerDiscovery&) = delete;

  /// Before MPI_Init. From now on this rank must receive packed whatever may be sent to it packed. Does nothing if the
  /// launcher does not identify the job and this rank. `groups`: of this process; unknown if peers need not know it.
  void announce(const ProcessorGroups& groups) noexcept;
  /// After MPI_Init, with the actual rank and number of ranks. If this rank announced itself under another number,
  /// withdraws the announcement.
  void confirm(int world_rank, int world_ranks) noexcept;
  /// True if this rank has announced itself: others may rely on it.
  bool announced() const noexcept { return socket_ >= 0; }
  /// True if the rank of MPI_COMM_WORLD is on this host and has announced itself. Costs one system call the first time,
  /// then a load.
  bool has(int world_rank) noexcept;
  /// True if distance_to() can answer anything but Distance::node.
  bool knows_groups() const noexcept { return knows_groups_; }
  /// The distance to another rank of MPI_COMM_WORLD on this host, from where both are bound; Distance::node also if
  /// the peer has not announced itself. Costs at most nine system calls the first time, then a load.
  Distance distance_to(int world_rank) noexcept;

 private:
  void withdraw() noexcept;
  void announce_groups() noexcept;

  int socket_ = -1;
  std::uint64_t job_ = 0;  ///< the same on all ranks of this job on this host; 0: unknown
  int rank_ = -1;
  int ranks_ = 0;
  enum Answer : std::uint8_t { unasked, absent, present };
  std::unique_ptr<std::atomic<std::uint8_t>[]> answers_;
  ProcessorGroups groups_;
  bool knows_groups_ = false;
  std::array<int, 3> group_sockets_{-1, -1, -1};            ///< cache, domain, socket
  std::unique_ptr<std::atomic<std::uint8_t>[]> distances_;  ///< a Distance; Distance::self: not determined yet
};

}  // namespace bestride::inline interpose
