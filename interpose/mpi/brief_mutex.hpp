// SPDX-License-Identifier: Apache-2.0
#pragma once
// BriefMutex: a lock for what takes some nanoseconds, or is seldom contended. A thread that waits spins, then sleeps.
//
// std::mutex takes two atomic exchanges for each lock and 110 instructions, which a type that is made, used once and
// freed paid six times. This takes one.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace bestride::inline interpose {

class BriefMutex {
 public:
  void lock() noexcept {
    if (locked_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  void unlock() noexcept { locked_.store(false, std::memory_order_release); }

 private:
  [[gnu::noinline]] void wait() noexcept {
    constexpr int spins = 200;
    for (int turn = 0;; ++turn) {
      if (!locked_.load(std::memory_order_relaxed) && !locked_.exchange(true, std::memory_order_acquire)) return;
      if (turn < spins) continue;
      // Yielding would not help a thread of less priority that has the lock. The system call, not nanosleep(), which
      // may end a cancelled thread.
      const timespec nap{0, 20'000};
      syscall(SYS_nanosleep, &nap, nullptr);
    }
  }
  std::atomic<bool> locked_{false};
};

}  // namespace bestride::inline interpose
