// SPDX-License-Identifier: Apache-2.0
#pragma once
// Computation of a given length, for benchmarks whose ranks wait for each other.
#include <ctime>

namespace bench {

/// Uses processor time of this thread.
inline void compute(double seconds) {
  const auto used = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  if (seconds <= 0) return;
  for (const double end = used() + seconds; used() < end;) {
  }
}

}  // namespace bench
