// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions of late.def: engaged only where a GPU may come into play, so that elsewhere their slots lead straight to the MPI library.
//
// A GPU may come into play where the machine has an NVIDIA device, the CUDA driver is loaded already, or BESTRIDE_CUDA_DRIVER names one:
// then they are engaged from the start, because a job may hand device memory to nothing but these functions, and pay the one test of
// gpu_in_play(). Elsewhere they are engaged when a driver is seen after all, by any call that is engaged.
#include <cstddef>
#include <span>

#include "interpose/back/services.hpp"

namespace bestride {

/// One function: an engagement, and where the pointer to the library's own is.
struct LateEntry {
  bestride_engagement engagement;
  void** library;
};
std::span<const LateEntry> late_moved() noexcept;
std::span<const LateEntry> late_reduced() noexcept;
std::span<const LateEntry> late_refused() noexcept;

/// See above. Reads a few file names.
bool gpu_may_come() noexcept;
/// Engages them, once. After bestride_back_open has made the runtime; any thread.
void engage_late() noexcept;
/// Only the collectives among them: for a job whose collectives may go through a hierarchy.
void engage_late_collectives() noexcept;

}  // namespace bestride
