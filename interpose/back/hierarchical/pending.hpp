// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives that are carried on in steps: from every MPI call, while there are any.
//
// A rank that waits inside of the MPI library carries nothing on, and others may wait for it. So while something is pending, what would wait
// there tests in turns instead. Blocking collectives of the library can't: before one, all is carried on as far as it goes.
#include <mpi.h>
#include <sched.h>

#include <atomic>

namespace bestride {

/// Operations that have not ended, in all queues of the process.
extern constinit std::atomic<int> collectives_pending;
inline bool any_collective_pending() noexcept { return collectives_pending.load(std::memory_order_relaxed) != 0; }
/// Carries on all queues that have something to do, as far as that goes without waiting. Any thread; returns at once if another is at it.
void progress_collectives() noexcept;
inline void progress_pending_collectives() noexcept {
  if (any_collective_pending()) [[unlikely]] progress_collectives();
}

/// Carries what is pending on this communicator to its end: before a blocking collective of the library's on it, in which this rank would wait for
/// members that wait for it. Every member has made the pending calls before it can come to this one, so it ends.
void finish_collectives_of(MPI_Comm comm) noexcept;
inline void before_library_collective(MPI_Comm comm) noexcept {
  if (any_collective_pending()) [[unlikely]] finish_collectives_of(comm);
}

/// Makes test(&flag), an MPI test of something, again and again until it sets the flag or fails, and carries collectives on in between.
/// With more ranks than cores the rank that is waited for may need this core; with fewer, giving it away costs 0.4 us.
template <class Test>
int test_in_turns(Test test) noexcept {
  for (;;) {
    progress_collectives();
    int flag = 0;
    const int error = test(&flag);
    if (flag || error != MPI_SUCCESS) return error;
    sched_yield();
  }
}

}  // namespace bestride
