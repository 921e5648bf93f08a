// SPDX-License-Identifier: Apache-2.0
#pragma once
// PeerDiscovery: determines how near the processors of other ranks on this host are.
//
// A job in which only some ranks have the preload must run, so discovery uses no collective and never waits. Before
// MPI_Init a rank that knows which last-level cache, NUMA domain and socket its processors belong to binds an abstract
// Unix datagram socket for each of these, whose name contains the job's identity on this host, the rank and the number
// of the cache, the domain or the socket. After MPI_Init every rank of the job has done so, and a rank tests whether a
// peer shares its cache by connecting to the name that the peer would then have. The name disappears with the process,
// also after SIGKILL, and needs no file system. Any failure means "not near". Alternative considered: a collective in
// MPI_Init, which hangs a job with an unpreloaded rank.
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

  /// Announces this rank to the others on this host. Called before MPI_Init; does nothing if the launcher does not
  /// identify the job and this rank. `groups`: of this process; unknown if peers need not know it.
  void announce(const ProcessorGroups& groups) noexcept;
  /// Called after MPI_Init, with the actual rank and number of ranks. If this rank announced itself under another
  /// number, withdraws the announcement.
  void confirm(int world_rank, int world_ranks) noexcept;
  /// True if distance_to() can answer anything but Distance::node.
  bool knows_groups() const noexcept { return knows_groups_; }
  /// The distance to another rank of MPI_COMM_WORLD on this host, from where both are bound; Distance::node also if
  /// the peer has not announced itself. Costs at most nine system calls the first time, then a load.
  Distance distance_to(int world_rank) noexcept;

 private:
  void withdraw() noexcept;
  std::uint64_t job_ = 0;  ///< the same on all ranks of this job on this host; 0: unknown
  int rank_ = -1;
  int ranks_ = 0;
  ProcessorGroups groups_;
  bool knows_groups_ = false;
  std::array<int, 3> sockets_{-1, -1, -1};                  ///< cache, domain, socket
  std::unique_ptr<std::atomic<std::uint8_t>[]> distances_;  ///< a Distance; Distance::self: not determined yet
};

}  // namespace bestride::inline interpose
