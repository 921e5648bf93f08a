// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/detection.hpp"

#include "base/variables.hpp"
#include "interpose/device/on_demand_interception.hpp"
#include "kernels/cuda/driver/driver.hpp"

namespace bestride::inline interpose {

constinit std::atomic<GpuDetection> gpu_detection{GpuDetection::not_yet};
constinit std::atomic<std::uint64_t> gpu_last_check{0};
constinit std::atomic<std::uint64_t> gpu_check_interval{0};

namespace {

/// 10 to 50 us, in ticks of gpu_ticks().
std::uint64_t interval() noexcept {
#if defined(__x86_64__)
  return 50'000;  // the counter runs at 1 to 5 GHz
#else
  std::uint64_t per_second;
  asm volatile("mrs %0, cntfrq_el0" : "=r"(per_second));
  return per_second / 50'000;
#endif
}

}  // namespace

bool detect_gpu_runtime() noexcept {
  // Device memory may exist even if the driver is unusable; an MPI that is not GPU-aware must not get it
  // (buffer_location.cpp).
  if (cuda::Driver::get() || cuda::Driver::unusable()) {
    gpu_detection.store(GpuDetection::yes, std::memory_order_relaxed);
    intercept_on_demand();
    return true;
  }
  try {
    if (Settings::get().text("BESTRIDE_GPU") == "off")
      gpu_detection.store(GpuDetection::never, std::memory_order_relaxed);
  } catch (...) {
  }
  gpu_check_interval.store(interval(), std::memory_order_relaxed);
  gpu_last_check.store(gpu_ticks(), std::memory_order_relaxed);
  return false;
}

void start_gpu_detection(const LibraryLoadScope& loads) noexcept {
  // The order matters: the query sees every library loaded before it, and a library loaded later follows `last`.
  const link_map* const last = loads.hold_last_object();
  if (!detect_gpu_runtime() && last) last_link_map.store(last, std::memory_order_release);
}

}  // namespace bestride::inline interpose
