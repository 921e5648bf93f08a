// SPDX-License-Identifier: Apache-2.0
#pragma once
// gpu_runtime_detected(): whether a buffer of a call can be device memory. Every call asks this, so it must cost almost
// nothing without a GPU.
//
// As long as the application has not loaded the CUDA driver, the answer is no. A query to the dynamic linker costs 30
// to 50 ns, more than a whole call that is forwarded. So the linker is queried only if a library was loaded since
// MPI_Init, which costs two loads to check (library_loads.hpp). After that the query is repeated if the time stamp
// counter has advanced by about 10 us since the last one; reading the counter costs 6 to 8 ns. No device pointer can be
// missed: between a query that finds no driver and the first device pointer, the application has to load the driver,
// initialize it and create a context, which takes milliseconds. Once the driver is loaded, the answer stays yes and
// costs one load.
// Alternative considered: a coarse clock, whose tick is longer than a small driver takes to load.
#include <atomic>
#include <cstdint>

#include "interpose/device/library_loads.hpp"

namespace bestride::inline interpose {

enum class GpuDetection : std::uint8_t { not_yet, yes, never };

/// The last known answer, when it was obtained, and how long it is valid (the last two in ticks of gpu_ticks()).
extern constinit std::atomic<GpuDetection> gpu_detection;
extern constinit std::atomic<std::uint64_t> gpu_last_check;
extern constinit std::atomic<std::uint64_t> gpu_check_interval;

inline std::uint64_t gpu_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

/// Queries now. With BESTRIDE_GPU=off the answer is `never`.
bool detect_gpu_runtime() noexcept;

/// Call after MPI_Init; `loads` must have been constructed before MPI_Init. Queries once; later queries are made only
/// if a library is loaded.
void start_gpu_detection(const LibraryLoadScope& loads) noexcept;

/// True if gpu_runtime_detected() is false without a closer look.
[[gnu::always_inline]] inline bool no_gpu_runtime() noexcept {
  const GpuDetection known = gpu_detection.load(std::memory_order_relaxed);
  return known == GpuDetection::not_yet ? !library_loaded_since_init() : known != GpuDetection::yes;
}
/// Thread-safe, never throws.
[[gnu::always_inline]] inline bool gpu_runtime_detected() noexcept {
  const GpuDetection known = gpu_detection.load(std::memory_order_relaxed);
  if (known != GpuDetection::not_yet) return known == GpuDetection::yes;
  if (!library_loaded_since_init()) [[likely]]
    return false;
  // If the counter runs backwards between sockets, the difference is huge and causes one extra query.
  if (gpu_ticks() - gpu_last_check.load(std::memory_order_relaxed) < gpu_check_interval.load(std::memory_order_relaxed))
    return false;
  return detect_gpu_runtime();
}

}  // namespace bestride::inline interpose
