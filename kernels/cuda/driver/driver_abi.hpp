// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of the CUDA driver's ABI that this folder uses. It is declared here so that building needs no CUDA header
// and linking no CUDA library. Values and layouts are those of the driver API since CUDA 12.0; if cuda.h is available
// at build time, abi_test.cpp compares every one of them with it. Alternative considered: building with cuda.h. A login
// node or a distribution's build machine has no cuda.h, and a library built there could never use a GPU.
#include <cstddef>
#include <cstdint>

namespace bestride::cuda {

using Code = int;               ///< CUresult
using DeviceOrdinal = int;      ///< CUdevice: the ordinal itself
using Address = std::uint64_t;  ///< CUdeviceptr
using ContextHandle = struct ContextObject*;
using StreamHandle = struct StreamObject*;
using EventHandle = struct EventObject*;
using ModuleHandle = struct ModuleObject*;
using FunctionHandle = struct FunctionObject*;
using GraphHandle = struct GraphObject*;
using GraphExecHandle = struct GraphExecObject*;
using GraphNodeHandle = struct GraphNodeObject*;

namespace code {
inline constexpr Code success = 0;
inline constexpr Code invalid_value = 1;
inline constexpr Code out_of_memory = 2;
inline constexpr Code not_initialized = 3;
inline constexpr Code deinitialized = 4;
inline constexpr Code no_device = 100;
inline constexpr Code invalid_device = 101;
inline constexpr Code invalid_image = 200;
inline constexpr Code invalid_context = 201;
inline constexpr Code no_binary_for_gpu = 209;
inline constexpr Code unsupported_ptx_version = 222;
inline constexpr Code invalid_handle = 400;
inline constexpr Code not_found = 500;
inline constexpr Code not_ready = 600;
inline constexpr Code illegal_address = 700;
inline constexpr Code context_is_destroyed = 709;
inline constexpr Code launch_failed = 719;
inline constexpr Code not_supported = 801;
inline constexpr Code unknown = 999;
}  // namespace code

namespace attribute {  // CUpointer_attribute
inline constexpr int context = 1;
inline constexpr int memory_type = 2;
inline constexpr int device_pointer = 3;
inline constexpr int buffer_id = 7;
inline constexpr int is_managed = 8;
inline constexpr int device_ordinal = 9;
inline constexpr int range_start = 11;
inline constexpr int range_size = 12;
}  // namespace attribute

namespace memory_type {  // CUmemorytype
inline constexpr unsigned host = 1;
inline constexpr unsigned device = 2;
inline constexpr unsigned unified = 4;
}  // namespace memory_type

namespace range_attribute {  // CUmem_range_attribute
inline constexpr int preferred_location = 2;
inline constexpr int last_prefetch_location = 4;
}  // namespace range_attribute

namespace device_attribute {  // CUdevice_attribute
inline constexpr int max_pitch = 11;
inline constexpr int multiprocessors = 16;
inline constexpr int capability_major = 75;
inline constexpr int capability_minor = 76;
}  // namespace device_attribute

inline constexpr unsigned stream_non_blocking = 1;
inline constexpr unsigned event_disable_timing = 2;
inline constexpr unsigned host_alloc_portable = 1;
inline constexpr unsigned stream_capture_thread_local = 1;
/// CU_STREAM_LEGACY: the default stream, which waits for all blocking streams of its context.
inline StreamHandle legacy_stream() noexcept { return reinterpret_cast<StreamHandle>(std::uintptr_t{1}); }

/// CUDA_MEMCPY2D_v2
struct Copy2D {
  std::size_t source_x, source_y;
  unsigned source_type;
  const void* source_host;
  Address source_device;
  void* source_array;
  std::size_t source_pitch;
  std::size_t target_x, target_y;
  unsigned target_type;
  void* target_host;
  Address target_device;
  void* target_array;
  std::size_t target_pitch;
  std::size_t width, height;
};

/// CUDA_MEMCPY3D_v2
struct Copy3D {
  std::size_t source_x, source_y, source_z, source_lod;
  unsigned source_type;
  const void* source_host;
  Address source_device;
  void* source_array;
  void* source_reserved;
  std::size_t source_pitch, source_height;
  std::size_t target_x, target_y, target_z, target_lod;
  unsigned target_type;
  void* target_host;
  Address target_device;
  void* target_array;
  void* target_reserved;
  std::size_t target_pitch, target_height;
  std::size_t width, height, depth;
};

}  // namespace bestride::cuda
