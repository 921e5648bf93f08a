// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/play.hpp"

#include "base/variables.hpp"
#include "interpose/back/gpu/late.hpp"
#include "kernels/cuda/driver.hpp"

namespace bestride {

constinit std::atomic<GpuPlay> gpu_play{GpuPlay::not_yet};
constinit std::atomic<std::uint64_t> gpu_looked_at{0};
constinit std::atomic<std::uint64_t> gpu_look_every{0};

namespace {

/// 10 to 50 us.
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

bool look_for_gpu() noexcept {
  // With a driver that can't be used there still may be device memory, which must not reach an MPI that can't take it (place.cpp).
  if (cuda::Driver::get() || cuda::Driver::unusable()) {
    gpu_play.store(GpuPlay::yes, std::memory_order_relaxed);
    engage_late();
    return true;
  }
  try {
    if (Settings::get().text("BESTRIDE_GPU") == "off") gpu_play.store(GpuPlay::never, std::memory_order_relaxed);
  } catch (...) {
  }
  gpu_look_every.store(interval(), std::memory_order_relaxed);
  gpu_looked_at.store(gpu_ticks(), std::memory_order_relaxed);
  return false;
}

void look_from_now_on(const LoadsOfOneCall& loads) noexcept {
  // The look comes between: what was loaded before it is seen by it, what comes later stands behind `last`.
  const link_map* const last = loads.hold_last();
  if (!look_for_gpu() && last) last_object.store(last, std::memory_order_release);
}

}  // namespace bestride
