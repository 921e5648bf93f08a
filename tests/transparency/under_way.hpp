// SPDX-License-Identifier: Apache-2.0
#pragma once
// A nonblocking collective that is pending while a rank waits in another call.
#include <mpi.h>

#include <functional>
#include <vector>

#include "tests/support/harness.hpp"
#include "tests/transparency/watchdog.hpp"

namespace bestride::test {

/// MPI_Iallgather of 4 MiB per rank, and the check of its result.
class Gather {
 public:
  explicit Gather(MPI_Comm comm) {
    MPI_Comm_rank(comm, &rank_);
    MPI_Comm_size(comm, &size_);
    out_.assign(bytes, static_cast<char>(rank_ + 1));
    in_.assign(bytes * static_cast<std::size_t>(size_), 0);
    MPI_Iallgather(out_.data(), bytes, MPI_BYTE, in_.data(), bytes, MPI_BYTE, comm, &request_);
  }
  int cancel() { return MPI_Cancel(&request_); }
  void wait() {
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
    for (int r = 0; r < size_; ++r) {
      const std::size_t first = static_cast<std::size_t>(r) * bytes;
      CHECK_EQUAL(r + 1, static_cast<int>(in_[first]));
      CHECK_EQUAL(r + 1, static_cast<int>(in_[first + bytes - 1]));
    }
  }

 private:
  static constexpr std::size_t bytes = std::size_t{1} << 22;
  std::vector<char> out_, in_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int rank_ = 0, size_ = 1;
};

/// Half of the ranks wait for the collective before `call`. The other half enter `call` first, so they can progress the
/// collective only inside it. Then the halves swap roles. `call` may wait for any other rank.
inline void while_pending(MPI_Comm comm, const std::function<void()>& call) {
  for (int first = 0; first < 2; ++first) {
    watch_for_hang();
    Gather gather(comm);
    const bool waits_first = world_rank() % 2 == first;
    step("MPI_Wait");
    if (waits_first) gather.wait();
    step("the call while a collective is pending");
    call();
    step("MPI_Wait after the call");
    if (!waits_first) gather.wait();
  }
}

}  // namespace bestride::test
