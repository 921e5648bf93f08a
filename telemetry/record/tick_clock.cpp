// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/tick_clock.hpp"

#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace bestride::inline telemetry {
namespace {

std::int64_t nanoseconds(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// 0 if the processor does not tell it.
double told_ticks_per_second() noexcept {
#if defined(__x86_64__)
  // Leaf 0x15: the ratio of the counter to a crystal, and the crystal's frequency (Intel SDM volume 2, CPUID).
  unsigned denominator = 0, numerator = 0, crystal = 0, unused = 0;
  if (__get_cpuid(0x15, &denominator, &numerator, &crystal, &unused) && denominator && numerator && crystal)
    return static_cast<double>(crystal) * numerator / denominator;
  return 0;
#else
  std::uint64_t frequency;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
  return static_cast<double>(frequency);
#endif
}

/// An interval of 0.1 ms limits the error to the time of a clock reading (some 100 ns) divided by it: 1e-3.
double measured_ticks_per_second() noexcept {
  const ClockAnchor first = read_clocks();
  ClockAnchor last;
  do last = read_clocks();
  while (last.monotonic - first.monotonic < 100'000);
  return ticks_per_second(first, last);
}

}  // namespace

ClockAnchor read_clocks() noexcept {
  ClockAnchor best;
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 5; ++i) {
    const std::uint64_t before = ticks();
    const std::int64_t monotonic = nanoseconds(CLOCK_MONOTONIC);
    const std::uint64_t after = ticks();
    const std::int64_t realtime = nanoseconds(CLOCK_REALTIME);
    if (after - before < least) {
      least = after - before;
      best = {before + (after - before) / 2, monotonic, realtime};
    }
  }
  return best;
}

double ticks_per_second(const ClockAnchor& first, const ClockAnchor& last) noexcept {
  return static_cast<double>(last.ticks - first.ticks) * 1e9 / static_cast<double>(last.monotonic - first.monotonic);
}

double ticks_per_second() noexcept {
  static const double value = [] {
    const double told = told_ticks_per_second();
    return told > 0 ? told : measured_ticks_per_second();
  }();
  return value;
}

}  // namespace bestride::inline telemetry
