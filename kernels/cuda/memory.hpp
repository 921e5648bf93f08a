// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory: what a pointer given to MPI points to.
//
// Asked of the driver each time, because an address says nothing: it may be freed and given out again as another kind. What is
// kept (per thread) is keyed by the driver's buffer id, which is unique in a process, so a kept answer can't be stale: one query
// of two attributes confirms it. Host memory costs that one query, and nothing at all while no driver is loaded.
#include <cstdint>

#include "datatype/layout.hpp"
#include "kernels/cuda/driver.hpp"

namespace bestride::cuda {

enum class MemoryKind : std::uint8_t {
  host,     ///< nothing the driver knows: also when there is no driver, or it is not initialised, or already shut down
  pinned,   ///< page-locked host memory (allocated or registered): the CPU and every device reach it
  managed,  ///< migrates: the CPU and the devices reach it
  device,   ///< only devices reach it
  mixed,    ///< a layout whose bytes lie in memory of several kinds or contexts: left to MPI
};
const char* name(MemoryKind kind) noexcept;

struct Memory {
  MemoryKind kind = MemoryKind::host;
  DeviceOrdinal device = -1;         ///< where it lies, or whose context made it; -1 for host
  ContextHandle context = nullptr;   ///< a context that can reach it now; null for host, and where none is active (then left to MPI)
  std::uint64_t context_id = 0;      ///< of `context`: unlike the handle never used again
  std::uint64_t buffer_id = 0;       ///< of the allocation
  Address base = 0;                  ///< of the allocation; 0: not known
  std::uint64_t size = 0;            ///< of the allocation, bytes
  /// What has to be added to a host address to get the one a kernel uses: 0 but for some registered host memory.
  std::int64_t to_device = 0;

  /// The CPU may read and write it by ordinary loads and stores.
  bool host_reachable() const noexcept { return kind == MemoryKind::host || kind == MemoryKind::pinned || kind == MemoryKind::managed; }
};

/// What `pointer` points to. Thread-safe; never throws, never makes a context current, never initialises the driver.
Memory where(const void* pointer) noexcept;

/// What all bytes of `layout` at `user` point to: one query when they lie in one allocation (the rule), two or three for host
/// memory, else (absolute addresses) one per allocation touched; MemoryKind::mixed when those differ. A layout without bytes is host.
Memory where(const Layout& layout, const void* user) noexcept;

/// Whether a GPU kernel should move these bytes (false: the CPU's Packer). Device memory: yes; pinned: no, the CPU reaches it
/// without a launch; managed: by where it was last prefetched, or is preferred to lie, and the device if nothing was said,
/// since only that is right on devices that forbid the CPU to touch managed memory while a kernel runs.
bool moved_by_gpu(const Memory& memory, const Layout& layout, const void* user) noexcept;

}  // namespace bestride::cuda
