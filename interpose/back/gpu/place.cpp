// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/place.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

#include "datatype/build.hpp"
#include "interpose/back/calls.hpp"
#include "interpose/back/runtime.hpp"
#include "interpose/back/sides.hpp"

namespace bestride {
namespace {

/// All addresses that were ever found to be device memory lie in [low, high).
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

/// By the CPU. True also where the kernel does not allow the question.
bool readable(const void* pointer) noexcept {
  char byte;
  const iovec here{&byte, 1}, there{const_cast<void*>(pointer), 1};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) >= 0 || errno != EFAULT;
}

/// What the driver does not know and the CPU can't read, where device memory was seen: one load and two compares for host memory elsewhere,
/// a system call for host memory between. Where the driver can't be asked, that call for every buffer.
bool is_gone(const void* pointer) noexcept {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  if (cuda::Driver::unusable()) return !readable(pointer);
  if (address < device_low.load(std::memory_order_relaxed) || address >= device_high.load(std::memory_order_relaxed)) return false;
  return !readable(pointer);
}

Place classify(LayoutPtr layout, const void* buffer) noexcept {
  Place place;
  const void* first = layout ? static_cast<const std::byte*>(buffer) + layout->offset() : buffer;
  place.memory = layout ? cuda::where(*layout, buffer) : cuda::where(buffer);
  switch (place.memory.kind) {
    case cuda::MemoryKind::host:
      if (is_gone(first)) {
        place.memory.kind = cuda::MemoryKind::device;
        place.by_gpu = true;
      }
      break;
    case cuda::MemoryKind::device:
      remember_device(place.memory);
      [[fallthrough]];
    case cuda::MemoryKind::mixed: place.by_gpu = true; break;
    case cuda::MemoryKind::managed: place.by_gpu = layout && cuda::moved_by_gpu(place.memory, *layout, buffer); break;
    case cuda::MemoryKind::pinned: break;
  }
  place.layout = std::move(layout);
  return place;
}

}  // namespace

TypeEntry* known_type(MPI_Datatype type) noexcept {
  if (type == MPI_DATATYPE_NULL) return nullptr;
  auto& types = runtime().types;
  if (TypeEntry* entry = types.find(type)) return entry;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!types.find(type) && needs_no_commit(type)) types.insert_predefined(type);
  return types.find(type);
}

Place find_place(const void* buffer, std::int64_t count, TypeEntry* type) noexcept {
  if (count <= 0 || buffer == MPI_IN_PLACE) return {};
  return find_place(buffer, type ? type->layout(count) : nullptr);
}

Place find_place(const void* buffer, LayoutPtr layout) noexcept {
  if (!layout) return buffer && buffer != MPI_IN_PLACE ? classify(nullptr, buffer) : Place{};
  if (layout->size() == 0 || !address_is_sound(buffer, *layout)) return {};
  return classify(std::move(layout), buffer);
}

Place find_place(const void* buffer, std::int64_t bytes) noexcept {
  if (!buffer || bytes <= 0) return {};
  try {
    if (const Built block = make_block(0, bytes)) return classify(intern(*block), buffer);
  } catch (...) {
  }
  return classify(nullptr, buffer);
}

cuda::Memory place_of(const void* buffer, std::int64_t count, MPI_Datatype type) noexcept {
  return gpu_in_play() ? find_place(buffer, count, known_type(type)).memory : cuda::Memory{};
}

}  // namespace bestride
