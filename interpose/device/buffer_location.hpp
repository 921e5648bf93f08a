// SPDX-License-Identifier: Apache-2.0
#pragma once
// The location of a call's buffer, and whether the GPU must move its bytes.
#include <mpi.h>

#include <cstdint>

#include "interpose/device/detection.hpp"
#include "interpose/objects/type_registry.hpp"
#include "kernels/cuda/driver/memory.hpp"

namespace bestride::inline interpose {

/// The entry of a type whose messages may be in device memory. This includes predefined types, which are registered at
/// their first use here. nullptr: MPI_DATATYPE_NULL, a handle of unknown origin, or out of memory. Call only if
/// gpu_runtime_detected().
TypeEntry* find_or_add_type(MPI_Datatype type) noexcept;

/// The layout of a buffer argument, and the memory that contains it.
struct BufferLocation {
  cuda::Memory memory;
  LayoutPtr layout;  ///< null: not known; `memory` then describes the address alone
  /// The GPU has to move the bytes: device memory, memory of mixed kinds, or managed memory that is not on the CPU.
  bool needs_device = false;
};

/// `type`: the result of find_or_add_type(). Null and empty buffers (MPI_IN_PLACE, a null address, count <= 0, a type
/// without bytes) count as host memory. Former device memory that the CPU can't read (freed, or the driver fails)
/// counts as device memory without a context: no transfer can move it. Thread-safe, never throws.
BufferLocation locate_buffer(const void* buffer, std::int64_t count, TypeEntry* type) noexcept;

/// The location of the bytes of a layout, whose offsets are relative to `buffer`.
BufferLocation locate_buffer(const void* buffer, LayoutPtr layout) noexcept;
/// The location of `bytes` bytes from `buffer` on.
BufferLocation locate_buffer(const void* buffer, std::int64_t bytes) noexcept;

/// Memory that the CPU can't access. It can access managed memory.
inline bool not_host_accessible(const BufferLocation& place) noexcept {
  return place.needs_device && !place.memory.host_reachable();
}

/// The memory that (buffer, count, type) refers to. Host memory if no GPU runtime is detected.
cuda::Memory memory_of(const void* buffer, std::int64_t count, MPI_Datatype type) noexcept;

}  // namespace bestride::inline interpose
