// SPDX-License-Identifier: Apache-2.0
#pragma once
// Presence: which ranks on this host have the preload too, and so will unpack what we pack.
//
// Needed because a packed message of a mixed basic type may only be sent to a rank that receives it packed (plan.cpp says why),
// and because a job in which only some ranks have the preload must run: so nothing collective, nothing that waits. Every rank
// binds an abstract Unix datagram socket named by host job and rank before MPI_Init; after MPI_Init every rank of the job has
// done so, and connecting to the name tells whether the peer has. The name vanishes with the process, also after SIGKILL, and
// touches no file system. Whatever fails means "not there", and the message is left to MPI.
// Alternative that lost: a collective in MPI_Init; it hangs a job with an unpreloaded rank.
#include <atomic>
#include <cstdint>
#include <memory>

namespace bestride {

class Presence {
 public:
  Presence() = default;
  ~Presence();
  Presence(const Presence&) = delete;
  Presence& operator=(const Presence&) = delete;

  /// Before MPI_Init: from here on this rank keeps the promise to receive packed what may be sent to it packed. Does nothing
  /// where the launcher does not say which job and rank this is.
  void announce() noexcept;
  /// After MPI_Init: the true rank and number of ranks. A rank that announced itself under another number takes it back.
  void confirm(int world_rank, int world_ranks) noexcept;
  /// Others may count on this rank.
  bool announced() const noexcept { return socket_ >= 0; }
  /// The rank of MPI_COMM_WORLD is on this host and has announced itself. One system call the first time, then a load.
  bool has(int world_rank) noexcept;

 private:
  void withdraw() noexcept;

  int socket_ = -1;
  std::uint64_t job_ = 0;  ///< equal on all ranks of this job on this host; 0: not known
  int rank_ = -1;
  int ranks_ = 0;
  enum Answer : std::uint8_t { unasked, absent, present };
  std::unique_ptr<std::atomic<std::uint8_t>[]> answers_;
};

}  // namespace bestride
