// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions of interpose/mpi/lazily_intercepted.def. They are intercepted only if the job may use a GPU; the
// collectives among them also if Bestride may carry them out, or if there is a report. Otherwise their slots lead
// directly to the MPI library.
//
// The job may use a GPU if the machine has an NVIDIA device, the CUDA driver is already loaded, or BESTRIDE_CUDA_DRIVER
// names a driver. Then the functions are intercepted from the start, because a job may pass device memory only to them;
// each call costs one test of gpu_runtime_detected(). Otherwise they are intercepted when any intercepted call detects
// a driver.
#include <cstddef>
#include <span>

#include "interpose/mpi/services.hpp"

namespace bestride::inline interpose {

/// One function: its interception, and where the pointer to the library's own function is stored.
struct LazyEntry {
  bestride_interception interception;
  void** library;
};
std::span<const LazyEntry> lazy_data_movement() noexcept;
std::span<const LazyEntry> lazy_reductions() noexcept;
std::span<const LazyEntry> lazy_unsupported() noexcept;

/// True if the job may use a GPU (see above). Tests for a few file names.
bool gpu_possible() noexcept;
/// Intercepts the functions, once. Call after bestride_backend_open has created the runtime; any thread may call it.
void intercept_lazily() noexcept;
/// Intercepts only the collectives among them: for a job whose collectives Bestride may carry out, or reports.
void intercept_collectives_lazily() noexcept;

}  // namespace bestride::inline interpose
