// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/first_call.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <ctime>

namespace bestride::preload {
namespace {

constexpr int patience_seconds = 5;

// Futexes are used directly: pthread mutexes offer neither the owner's id nor a timed wait that does not acquire the
// mutex.
long futex(std::atomic<int>* word, int operation, int value, const timespec* until) noexcept {
  return syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

bool FirstCall::run(bool (*work)()) noexcept {
  const int self = static_cast<int>(syscall(SYS_gettid));
  for (;;) {
    int seen = untouched;
    if (state_.compare_exchange_strong(seen, self, std::memory_order_acq_rel)) {
      const bool did = work();
      state_.store(did ? finished : untouched, std::memory_order_release);
      futex(&state_, FUTEX_WAKE_BITSET, INT_MAX, nullptr);
      return did;
    }
    if (seen == finished) return true;
    if (seen == self || !wait_for(seen)) return false;
  }
}

bool FirstCall::wait_for(int inside) noexcept {
  if (timed_out_.load(std::memory_order_relaxed)) return false;
  timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += patience_seconds;
  while (state_.load(std::memory_order_acquire) == inside) {
    if (futex(&state_, FUTEX_WAIT_BITSET, inside, &until) == 0 || errno != ETIMEDOUT) continue;
    timed_out_.store(true, std::memory_order_relaxed);
    return false;
  }
  return true;
}

}  // namespace bestride::preload
