// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the buffer of a call lies, and whether the GPU has to move its bytes.
#include <mpi.h>

#include <cstdint>

#include "interpose/back/gpu/play.hpp"
#include "interpose/back/types.hpp"
#include "kernels/cuda/memory.hpp"

namespace bestride {

/// The entry of a type whose messages may lie in device memory: also of predefined types, which are remembered at their first use here.
/// nullptr: MPI_DATATYPE_NULL, a handle of unknown making, no memory. Only to be asked while gpu_in_play().
TypeEntry* known_type(MPI_Datatype type) noexcept;

/// A buffer of a call: what it touches and where that lies.
struct Place {
  cuda::Memory memory;
  LayoutPtr layout;  ///< null: not known; `memory` is then that of the address alone
  /// The GPU has to move the bytes: device memory, memory of several kinds, and managed memory that is not the CPU's.
  bool by_gpu = false;
};

/// `type`: known_type()'s answer. What is nowhere (MPI_IN_PLACE, a null address, count <= 0, a type without bytes) is host memory.
/// Memory that was the device's and is the CPU's neither now (freed, the driver fails) is device memory without a context: nothing can
/// move it. Thread-safe, never throws.
Place find_place(const void* buffer, std::int64_t count, TypeEntry* type) noexcept;

/// The same for any layout.
Place find_place(const void* buffer, LayoutPtr layout) noexcept;
/// The same for a run of bytes.
Place find_place(const void* buffer, std::int64_t bytes) noexcept;

/// What the bytes of (buffer, count, type) point to. Host memory while no GPU is in play.
cuda::Memory place_of(const void* buffer, std::int64_t count, MPI_Datatype type) noexcept;

}  // namespace bestride
