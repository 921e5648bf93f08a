// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transport: messages between ranks of one communicator, as a collective needs them: contiguous bytes, both ends know how many at most, in
// order between two ranks and on one line. In a job it is the MPI library over a private communicator (interpose/back/hierarchical); in tests, memory.
#include <cstdint>

namespace bestride {

/// A message under way; belongs to the wire that made it.
struct Transfer {
  std::uint64_t handle = 0;
  std::int64_t bytes = 0;  ///< of a receive, once it is done: how many came
};

/// Messages on different lines may overtake each other.
enum class Line : int { first, second };

class Transport {
 public:
  /// Starts a message. `data` must stay as it is until done(). 0 <= bytes < 2^31. Never waits.
  virtual Transfer send(int rank, const void* data, std::int64_t bytes, Line line = Line::first) noexcept = 0;
  /// `bytes`: at most; the message may be shorter.
  virtual Transfer receive(int rank, void* data, std::int64_t bytes, Line line = Line::first) noexcept = 0;
  /// True once the message is through; of a receive, transfer.bytes is set then. The transfer is forgotten and must not be asked about again.
  virtual bool done(Transfer& transfer) noexcept = 0;
  /// A message could not be sent or received: nothing on this wire ends any more, and the collective is an error of the MPI library's.
  bool broken() const noexcept { return broken_; }

 protected:
  ~Transport() = default;
  bool broken_ = false;
};

}  // namespace bestride
