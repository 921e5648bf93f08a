// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sleeping on a word of memory that processes share (futex(2)).
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace bestride::inline collectives {

/// Wakes all that sleep on `word`.
inline void futex_wake(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// Sleeps until futex_wake(), for `nanoseconds`, or until a signal; not at all if `word` is not `value` any more.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, long nanoseconds) noexcept {
  const timespec most{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, &most, nullptr, 0);
}

}  // namespace bestride::inline collectives
