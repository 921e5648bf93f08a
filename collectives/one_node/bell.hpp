// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bell: processes sleep on it, in memory that they share, until another one rings it (futex(2)).
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace bestride::inline collectives {

/// Zeroed memory is a bell that has not been rung. A sleeper calls prepare(), checks its condition once more, then
/// calls sleep() or cancel(). So no ring is lost that follows the store for which the sleeper waits.
class Bell {
 public:
  /// Wakes all sleepers. Called after the store that they wait for.
  void ring() noexcept {
    // That store comes before the load of `sleepers_`; a sleeper registers itself before it checks its condition.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    rings_.fetch_add(1, std::memory_order_release);
    syscall(SYS_futex, word(), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
  /// Returns the number of rings, for sleep().
  std::uint32_t prepare() noexcept {
    sleepers_.fetch_add(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return rings_.load(std::memory_order_acquire);
  }
  void cancel() noexcept { sleepers_.fetch_sub(1, std::memory_order_relaxed); }
  /// Sleeps until the next ring after prepare(), for `nanoseconds`, or until a signal.
  void sleep(std::uint32_t rings, long nanoseconds) noexcept {
    const timespec most{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    syscall(SYS_futex, word(), FUTEX_WAIT, rings, &most, nullptr, 0);
    cancel();
  }

 private:
  std::uint32_t* word() noexcept { return reinterpret_cast<std::uint32_t*>(&rings_); }
  std::atomic<std::uint32_t> rings_, sleepers_;
};

}  // namespace bestride::inline collectives
