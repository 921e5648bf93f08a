// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transport: messages between the ranks of one communicator, as collectives need them. A message is contiguous bytes,
// both ends know its maximum length, and messages between two ranks on one virtual channel stay in order. In a job, the
// transport is the MPI library over a private communicator (interpose/collectives/mpi_transport); in tests, it is
// memory.
#include <cstdint>

namespace bestride::inline collectives {

/// A message in flight; belongs to the transport that made it.
struct Transfer {
  std::uint64_t handle = 0;
  std::int64_t bytes = 0;  ///< of a receive that is done: bytes received
};

/// Messages on different virtual channels may overtake each other.
enum class VirtualChannel : int { first, second };

class Transport {
 public:
  /// Starts a message. `data` must not change until done(). 0 <= bytes < 2^31. Never waits.
  virtual Transfer send(int rank, const void* data, std::int64_t bytes,
                        VirtualChannel line = VirtualChannel::first) noexcept = 0;
  /// `bytes`: the maximum; the message may be shorter.
  virtual Transfer receive(int rank, void* data, std::int64_t bytes,
                           VirtualChannel line = VirtualChannel::first) noexcept = 0;
  /// True once the message is complete; a receive then has transfer.bytes set. The transfer is released and must not be
  /// passed again.
  virtual bool done(Transfer& transfer) noexcept = 0;
  /// True if a message could not be sent or received. No later message on this transport completes, and the collective
  /// returns an error of the MPI library.
  bool broken() const noexcept { return broken_; }

 protected:
  ~Transport() = default;
  bool broken_ = false;
};

}  // namespace bestride::inline collectives
