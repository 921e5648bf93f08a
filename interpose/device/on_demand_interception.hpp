// SPDX-License-Identifier: Apache-2.0
#pragma once
// The functions that are intercepted on demand: those with the handling on_demand or refuse in
// interpose/preload/functions.tsv. Until then their slots lead directly to the MPI library.
//
// All of them are intercepted if the job may use a GPU: if the machine has an NVIDIA device, the CUDA driver is already
// loaded, or BESTRIDE_CUDA_DRIVER names a driver. Then they are intercepted from the start, because a job may pass
// device memory only to them; each call costs one test of gpu_runtime_detected(). Otherwise they are intercepted when
// any intercepted call detects a driver. Those with the handling on_demand, collectives, are also intercepted if
// Bestride may carry out collectives of the job, or reports them.
#include <vector>

#include "interpose/mpi/services.hpp"

namespace bestride::inline interpose {

/// The functions that are intercepted together.
enum class OnDemandGroup { collectives, refusing };
/// The functions of `group` that the MPI library has. May throw std::bad_alloc.
using ListOnDemand = std::vector<bestride_interception> (*)(OnDemandGroup group);
/// Call once, before the functions below.
void set_on_demand_groups(ListOnDemand list) noexcept;

/// True if the job may use a GPU (see above). Tests for a few file names.
bool gpu_possible() noexcept;
/// Intercepts the functions, once. Call after bestride_backend_open has created the runtime; any thread may call it.
void intercept_on_demand() noexcept;
/// Intercepts only those with the handling on_demand.
void intercept_collectives() noexcept;

}  // namespace bestride::inline interpose
