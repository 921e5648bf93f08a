// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory: the kind of memory that a pointer given to MPI points to.
//
// The driver is queried each time, because an address alone is not enough: the memory may have been freed and the
// address reused for another kind. Cached answers (per thread) are keyed by the driver's buffer id, which is unique in
// a process, so a cached answer cannot be stale; one query of two attributes confirms it. Host memory costs that one
// query, or nothing while no driver is loaded.
#include <cstdint>

#include "datatype/layout.hpp"
#include "kernels/cuda/driver/driver.hpp"

namespace bestride::cuda {

enum class MemoryKind : std::uint8_t {
  host,     ///< unknown to the driver; also if there is no driver, or it is not initialized or already shut down
  pinned,   ///< page-locked host memory (allocated or registered), accessible to the CPU and all devices
  managed,  ///< migrates; accessible to the CPU and the devices
  device,   ///< accessible to devices only
  mixed,    ///< a layout whose bytes are in memory of several kinds or contexts; left to MPI
};
const char* name(MemoryKind kind) noexcept;

struct Memory {
  MemoryKind kind = MemoryKind::host;
  DeviceOrdinal device = -1;        ///< the device that holds it, or whose context allocated it; -1 for host
  ContextHandle context = nullptr;  ///< a context that can access it now; null for host, and if no such context is
                                    ///< active (then left to MPI)
  std::uint64_t context_id = 0;     ///< of `context`; unlike the handle, an id is never reused
  std::uint64_t buffer_id = 0;      ///< of the allocation
  Address base = 0;                 ///< of the allocation; 0: unknown
  std::uint64_t size = 0;           ///< of the allocation, bytes
  /// Offset from a host address to the address that a kernel uses: 0 except for some registered host memory.
  std::int64_t to_device = 0;

  /// True if the CPU can access it by ordinary loads and stores.
  bool host_reachable() const noexcept {
    return kind == MemoryKind::host || kind == MemoryKind::pinned || kind == MemoryKind::managed;
  }
};

/// The memory that `pointer` points to. Thread-safe; never throws, never makes a context current, never initializes the
/// driver.
Memory where(const void* pointer) noexcept;

/// The memory that contains all bytes of `layout` at `user`. Costs one query if they are in one allocation (the usual
/// case), two or three for host memory, otherwise (absolute addresses) one per allocation touched. MemoryKind::mixed if
/// those differ. A layout without bytes is host.
Memory where(const Layout& layout, const void* user) noexcept;

/// True if a GPU kernel should move these bytes, false if the CPU's Packer should. Device memory: true. Pinned memory:
/// false, because the CPU accesses it without a launch. Managed memory: depends on where it was last prefetched to or
/// is preferred to be; the device if neither is set, because some devices forbid the CPU to access managed memory while
/// a kernel runs.
bool moved_by_gpu(const Memory& memory, const Layout& layout, const void* user) noexcept;

}  // namespace bestride::cuda
