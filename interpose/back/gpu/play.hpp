// SPDX-License-Identifier: Apache-2.0
#pragma once
// gpu_in_play(): whether any buffer of a call can be device memory. The one question every call asks; without a GPU it must cost nothing.
//
// As long as the application has not loaded the CUDA driver the answer is no. Asking the dynamic linker each time costs 30 to 50 ns, more
// than a whole call that is left alone; so it is asked only if something was loaded since MPI_Init (loaded.hpp), which two loads tell. From then
// on it is asked again when the time stamp counter has moved on by some 10 us since the last look, which costs 6 to 8 ns. That misses nothing:
// between a look that found no driver and a device pointer lie the loading of the driver, its initialisation and the making of a context,
// which take milliseconds. Once the driver is there the answer stays yes: one load.
// Alternative that lost: a coarse clock, whose ticks are longer than a small driver takes to load.
#include <atomic>
#include <cstdint>

#include "interpose/back/gpu/loaded.hpp"

namespace bestride {

enum class GpuPlay : std::uint8_t { not_yet, yes, never };

/// What is known so far, and when that was looked at.
extern constinit std::atomic<GpuPlay> gpu_play;
extern constinit std::atomic<std::uint64_t> gpu_looked_at;
extern constinit std::atomic<std::uint64_t> gpu_look_every;

inline std::uint64_t gpu_ticks() noexcept {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  std::uint64_t ticks;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#endif
}

/// Looks now. BESTRIDE_GPU=off: never.
bool look_for_gpu() noexcept;

/// After MPI_Init, which `loads` stood around: looks, and from now on only if something is loaded.
void look_from_now_on(const LoadsOfOneCall& loads) noexcept;

/// Thread-safe, never throws.
inline bool gpu_in_play() noexcept {
  const GpuPlay known = gpu_play.load(std::memory_order_relaxed);
  if (known != GpuPlay::not_yet) return known == GpuPlay::yes;
  if (!loaded_since()) [[likely]] return false;
  // A counter that runs backwards between sockets gives a huge difference: one look more.
  if (gpu_ticks() - gpu_looked_at.load(std::memory_order_relaxed) < gpu_look_every.load(std::memory_order_relaxed)) return false;
  return look_for_gpu();
}

}  // namespace bestride
