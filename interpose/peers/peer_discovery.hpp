// SPDX-License-Identifier: Apache-2.0
#pragma once
// PeerDiscovery: determines which ranks on this host have the preload and therefore unpack what this rank packs.
//
// A packed message of a mixed basic type may only be sent to a rank that receives it packed (objects/plan.cpp gives the
// reason). A job in which only some ranks have the preload must run, so discovery uses no collective and never waits.
// Before MPI_Init every rank binds an abstract Unix datagram socket whose name contains the job's identity on this host
// and the rank. After MPI_Init every rank of the job has done so, and connecting to a name tells whether that peer has
// the preload. The name disappears with the process, also after SIGKILL, and needs no file system. Any failure means
// "not present", and the message is left to MPI. Alternative considered: a collective in MPI_Init, which hangs a job
// with an unpreloaded rank.
#include <atomic>
#include <cstdint>
#include <memory>

namespace bestride::inline interpose {

class PeerDiscovery {
 public:
  PeerDiscovery() = default;
  ~PeerDiscovery();
  PeerDiscovery(const PeerDiscovery&) = delete;
  PeerDiscovery& operator=(const PeerDiscovery&) = delete;

  /// Before MPI_Init. From now on this rank must receive packed whatever may be sent to it packed. Does nothing if the
  /// launcher does not identify the job and this rank.
  void announce() noexcept;
  /// After MPI_Init, with the actual rank and number of ranks. If this rank announced itself under another number,
  /// withdraws the announcement.
  void confirm(int world_rank, int world_ranks) noexcept;
  /// True if this rank has announced itself: others may rely on it.
  bool announced() const noexcept { return socket_ >= 0; }
  /// True if the rank of MPI_COMM_WORLD is on this host and has announced itself. Costs one system call the first time,
  /// then a load.
  bool has(int world_rank) noexcept;

 private:
  void withdraw() noexcept;

  int socket_ = -1;
  std::uint64_t job_ = 0;  ///< the same on all ranks of this job on this host; 0: unknown
  int rank_ = -1;
  int ranks_ = 0;
  enum Answer : std::uint8_t { unasked, absent, present };
  std::unique_ptr<std::atomic<std::uint8_t>[]> answers_;
};

}  // namespace bestride::inline interpose
