// SPDX-License-Identifier: Apache-2.0
#pragma once
// The processor's tick counter: the cheapest clock that all processes of a host share. 8 ns on hardware, 30 ns in a
// virtual machine, where clock_gettime takes twice as long.
#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace bestride::inline telemetry {

/// Ticks since some point in time that is the same for all processes of the host. Not ordered against loads and stores.
inline std::uint64_t ticks() noexcept {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t now;
  asm volatile("mrs %0, cntvct_el0" : "=r"(now));
  return now;
#else
#error "no tick counter is known for this processor"
#endif
}

/// A reading of the tick counter and of the system's clocks at the same time.
struct ClockAnchor {
  std::uint64_t ticks = 0;
  std::int64_t monotonic = 0;  ///< CLOCK_MONOTONIC, nanoseconds
  std::int64_t realtime = 0;   ///< CLOCK_REALTIME, nanoseconds
};
/// The reading with the least delay of several.
ClockAnchor read_clocks() noexcept;

/// Ticks per second: from the processor where it tells, else measured against CLOCK_MONOTONIC (0.1 ms, once a process;
/// error up to 1e-3).
double ticks_per_second() noexcept;
/// Between two readings, some time apart.
double ticks_per_second(const ClockAnchor& first, const ClockAnchor& last) noexcept;

}  // namespace bestride::inline telemetry
