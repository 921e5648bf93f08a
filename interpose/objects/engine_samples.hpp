// SPDX-License-Identifier: Apache-2.0
#pragma once
// EngineSamples: how long the engine and the MPI library take for the same fragments of the messages of a plan. For the
// report: what the library would have taken is measured, not predicted.
#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/float_environment.hpp"
#include "interpose/mpi/brief_mutex.hpp"

namespace bestride::inline interpose {

/// How long Bestride and the library take to pack or unpack the same fragments of a type. Any thread.
class EngineSamples {
 public:
  /// One of so many fragments is measured, the first one among them.
  static constexpr std::uint32_t period = 16;

  /// Counts a fragment. 0: it is not measured; else the number of the sample, from 1.
  std::uint32_t draw() noexcept {
    const std::uint32_t before = fragments_.fetch_add(1, std::memory_order_relaxed);
    return before % period == 0 ? before / period + 1 : 0;
  }
  /// Adds a sample. A sample, or the mean of those before it, is dropped if it lasted much longer than the other one:
  /// then the thread had to wait for its processor.
  void add(std::int64_t bytes, std::int64_t own_ns, std::int64_t library_ns) noexcept {
    const FloatEnvironment floats;
    const Sums sample{static_cast<double>(bytes), static_cast<double>(own_ns), static_cast<double>(library_ns)};
    const std::lock_guard lock(mutex_);
    if (sums_.bytes > 0 && exceeds(sample, sums_)) return;
    if (sums_.bytes > 0 && exceeds(sums_, sample)) sums_ = {};
    sums_.bytes += sample.bytes;
    sums_.own_ns += sample.own_ns;
    sums_.library_ns += sample.library_ns;
  }

  struct Seconds {
    double own = 0, library = 0;
  };
  /// The times for `bytes` bytes; zeros as long as nothing was measured.
  Seconds seconds(std::int64_t bytes) const noexcept {
    const std::lock_guard lock(mutex_);
    const double share = sums_.bytes > 0 ? 1e-9 * static_cast<double>(bytes) / sums_.bytes : 0;
    return {share * sums_.own_ns, share * sums_.library_ns};
  }

 private:
  struct Sums {
    double bytes = 0, own_ns = 0, library_ns = 0;
  };
  /// True if one of the times of `sums`, scaled to the bytes of `than`, is more than ten times that of `than`, and 10
  /// us more.
  static bool exceeds(const Sums& sums, const Sums& than) noexcept {
    const double scale = than.bytes / sums.bytes;
    return scale * sums.own_ns > 10 * than.own_ns + 10'000 || scale * sums.library_ns > 10 * than.library_ns + 10'000;
  }

  std::atomic<std::uint32_t> fragments_{0};
  mutable BriefMutex mutex_;
  Sums sums_;
};

}  // namespace bestride::inline interpose
