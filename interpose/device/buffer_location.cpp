// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/buffer_location.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "datatype/build.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/address.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

/// The range [low, high) covers all addresses that have been classified as device memory.
std::atomic<std::uint64_t> device_low{UINT64_MAX}, device_high{0};

void remember_device(const cuda::Memory& memory) noexcept {
  for (std::uint64_t low = device_low.load(std::memory_order_relaxed);
       memory.base < low && !device_low.compare_exchange_weak(low, memory.base, std::memory_order_relaxed);) {
  }
  const std::uint64_t end = memory.base + memory.size;
  for (std::uint64_t high = device_high.load(std::memory_order_relaxed);
       end > high && !device_high.compare_exchange_weak(high, end, std::memory_order_relaxed);) {
  }
}

/// True if the CPU can read the address, or if the kernel does not permit the test.
bool readable(const void* pointer) noexcept {
  char byte;
  const iovec here{&byte, 1}, there{const_cast<void*>(pointer), 1};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) >= 0 || errno != EFAULT;
}

/// True for an address that the driver does not know and the CPU can't read, within the range where device memory was
/// seen. Costs one load and two compares for host memory outside of this range, and a system call for host memory
/// inside it. If the driver is unusable, costs the system call for every buffer.
bool is_context_lost(const void* pointer) noexcept {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (cuda::Driver::unusable()) return !readable(pointer);
  if (address < device_low.load(std::memory_order_relaxed) || address >= device_high.load(std::memory_order_relaxed))
    return false;
  return !readable(pointer);
}

BufferLocation classify(LayoutPtr layout, const void* buffer) noexcept {
  BufferLocation location;
  const void* first = layout ? static_cast<const std::byte*>(buffer) + layout->offset() : buffer;
  location.memory = layout ? cuda::where(*layout, buffer) : cuda::where(buffer);
  switch (location.memory.kind) {
    case cuda::MemoryKind::host:
      if (is_context_lost(first)) {
        location.memory.kind = cuda::MemoryKind::device;
        location.needs_device = true;
      }
      break;
    case cuda::MemoryKind::device: remember_device(location.memory); [[fallthrough]];
    case cuda::MemoryKind::mixed: location.needs_device = true; break;
    case cuda::MemoryKind::managed:
      location.needs_device = layout && cuda::moved_by_gpu(location.memory, *layout, buffer);
      break;
    case cuda::MemoryKind::pinned: break;
  }
  location.layout = std::move(layout);
  return location;
}

}  // namespace

TypeEntry* find_or_add_type(MPI_Datatype type) noexcept {
  if (type == MPI_DATATYPE_NULL) return nullptr;
  auto& types = runtime().types;
  if (TypeEntry* entry = types.find(type)) return entry;
  if (!predefined(type)) return nullptr;
  types.insert_predefined(type);
  return types.find(type);
}

BufferLocation locate_buffer(const void* buffer, std::int64_t count, TypeEntry* type) noexcept {
  if (count <= 0 || buffer == MPI_IN_PLACE) return {};
  return locate_buffer(buffer, type ? type->layout(count) : nullptr);
}

BufferLocation locate_buffer(const void* buffer, LayoutPtr layout) noexcept {
  if (!layout) return buffer && buffer != MPI_IN_PLACE ? classify(nullptr, buffer) : BufferLocation{};
  if (layout->size() == 0 || !address_is_plausible(buffer, *layout)) return {};
  return classify(std::move(layout), buffer);
}

BufferLocation locate_buffer(const void* buffer, std::int64_t bytes) noexcept {
  if (!buffer || bytes <= 0) return {};
  try {
    if (const Built block = make_block(0, bytes)) return classify(intern(*block), buffer);
  } catch (...) {
  }
  return classify(nullptr, buffer);
}

cuda::Memory memory_of(const void* buffer, std::int64_t count, MPI_Datatype type) noexcept {
  return gpu_runtime_detected() ? locate_buffer(buffer, count, find_or_add_type(type)).memory : cuda::Memory{};
}

}  // namespace bestride::inline interpose
