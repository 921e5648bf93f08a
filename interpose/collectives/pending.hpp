// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pending collectives make progress step by step: from every intercepted MPI call while there are any, and from the
// progress thread.
//
// If a rank waits inside the MPI library, its pending collectives make progress only in that thread, which is slow. So
// while something is pending, the common blocking calls poll with tests instead of waiting in the library. Before a
// blocking collective of the library on the same communicator, pending collectives are completed.
#include <mpi.h>
#include <sched.h>

#include <atomic>

namespace bestride::inline interpose {

/// Operations, in all queues of the process, that have not ended or whose requests are not complete.
extern constinit std::atomic<int> collectives_pending;
inline bool any_collective_pending() noexcept { return collectives_pending.load(std::memory_order_acquire) != 0; }
/// Operations, in all queues of the process, that have not ended.
extern constinit std::atomic<int> collectives_running;
/// Counts the calls of progress_collectives() that the application's MPI calls make.
extern constinit std::atomic<unsigned> progress_by_calls;
/// Advances all queues that have work, as far as possible without waiting. Callable from any thread; returns at once if
/// another thread is doing it. `may_call_mpi`: this thread may call MPI functions (CollectiveQueue::step()).
void progress_collectives(bool may_call_mpi = true) noexcept;
inline void progress_pending_collectives() noexcept {
  if (any_collective_pending()) [[unlikely]] {
    progress_by_calls.fetch_add(1, std::memory_order_relaxed);
    progress_collectives();
  }
}

/// Completes what is pending on this communicator. Called before a blocking collective of the library on it, because
/// there this rank would wait for members that wait for its pending operations. Every member has made the pending calls
/// before it can reach this one, so this ends.
void finish_collectives_of(MPI_Comm comm) noexcept;
inline void before_library_collective(MPI_Comm comm) noexcept {
  if (any_collective_pending()) [[unlikely]]
    finish_collectives_of(comm);
}

/// Calls test(&flag), an MPI test function, until it sets the flag or fails, and advances collectives in between. After
/// some turns it yields the core: with more ranks than cores, the rank that is waited for may need it; with fewer,
/// yielding costs 0.4 us.
template <class Test>
int poll_until_complete(Test test) {
  constexpr int turns_before_yield = 32;
  for (int turn = 0;; ++turn) {
    progress_by_calls.fetch_add(1, std::memory_order_relaxed);
    progress_collectives();
    int flag = 0;
    const int error = test(&flag);
    if (flag || error != MPI_SUCCESS) return error;
    if (turn >= turns_before_yield) sched_yield();
  }
}

}  // namespace bestride::inline interpose
