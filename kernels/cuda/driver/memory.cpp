// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/memory.hpp"

#include <array>

#include "datatype/build.hpp"

namespace bestride::cuda {
namespace {

/// Maximum number of blocks queried one by one if a layout extends beyond its first allocation. Layouts of absolute
/// addresses with more blocks are `mixed`.
constexpr int max_questions = 4096;

bool holds(const Memory& memory, Address address) {
  return memory.base <= address && address - memory.base < memory.size;
}

/// The most recent allocations of this thread. A buffer id is never reused, so an entry is either correct or not found.
struct RecentAllocations {
  std::array<Memory, 8> entries;
  unsigned next = 0;
};
thread_local RecentAllocations kept;

/// Memory from pools and memory mapped by hand may belong to no context. The primary context of its device can access
/// it, if the application has activated that context. The context is retained and released at once, and only if it is
/// already active.
ContextHandle primary_context(const Driver& driver, int ordinal) {
  DeviceOrdinal device = 0;
  unsigned flags = 0;
  int active = 0;
  ContextHandle context = nullptr;
  if (ordinal < 0 || driver.cuDeviceGet(&device, ordinal) != code::success) return nullptr;
  if (driver.cuDevicePrimaryCtxGetState(device, &flags, &active) != code::success || !active) return nullptr;
  if (driver.cuDevicePrimaryCtxRetain(&context, device) != code::success) return nullptr;
  driver.cuDevicePrimaryCtxRelease(device);
  return context;
}

Memory ask(const Driver& driver, Address pointer) {
  // Wider than what the driver writes, and zero: an attribute that the driver does not write counts as unset.
  std::uint64_t context = 0, type = 0, device_pointer = 0, buffer_id = 0, managed = 0, base = 0, size = 0;
  std::int64_t ordinal = -1;
  std::array attributes{attribute::context,     attribute::memory_type, attribute::device_pointer,
                        attribute::buffer_id,   attribute::is_managed,  attribute::device_ordinal,
                        attribute::range_start, attribute::range_size};
  std::array<void*, 8> data{&context, &type, &device_pointer, &buffer_id, &managed, &ordinal, &base, &size};
  Memory memory;
  if (driver.cuPointerGetAttributes(static_cast<unsigned>(attributes.size()), attributes.data(), data.data(),
                                    pointer) != code::success)
    return memory;
  if (type == 0) return memory;
  memory.kind = static_cast<std::uint32_t>(managed) != 0 ? MemoryKind::managed
                : type == memory_type::host              ? MemoryKind::pinned
                                                         : MemoryKind::device;
  memory.device = static_cast<std::int32_t>(ordinal);
  memory.buffer_id = buffer_id;
  memory.base = base;
  memory.size = size;
  if (memory.kind == MemoryKind::pinned && device_pointer != 0)
    memory.to_device = static_cast<std::int64_t>(device_pointer - pointer);
  memory.context = reinterpret_cast<ContextHandle>(static_cast<std::uintptr_t>(context));
  if (!memory.context) memory.context = primary_context(driver, memory.device);
  unsigned long long id = 0;
  if (memory.context && driver.cuCtxGetId(memory.context, &id) == code::success)
    memory.context_id = id;
  else
    memory.context = nullptr;
  return memory;
}

Memory where_on(const Driver& driver, Address pointer) {
  std::uint64_t type = 0, buffer_id = 0;
  std::array attributes{attribute::memory_type, attribute::buffer_id};
  std::array<void*, 2> data{&type, &buffer_id};
  if (driver.cuPointerGetAttributes(2, attributes.data(), data.data(), pointer) != code::success || type == 0)
    return {};
  if (buffer_id != 0)
    for (const Memory& memory : kept.entries)
      if (memory.buffer_id == buffer_id && holds(memory, pointer)) return memory;
  Memory memory = ask(driver, pointer);
  // The second query failed. Memory that is known not to be host memory must not be treated as host memory.
  if (memory.kind == MemoryKind::host)
    memory.kind = type == memory_type::host ? MemoryKind::pinned : MemoryKind::device;
  if (memory.buffer_id != 0 && memory.context) kept.entries[kept.next++ % kept.entries.size()] = memory;
  return memory;
}

}  // namespace

const char* name(MemoryKind kind) noexcept {
  switch (kind) {
    case MemoryKind::host: return "host";
    case MemoryKind::pinned: return "pinned";
    case MemoryKind::managed: return "managed";
    case MemoryKind::device: return "device";
    case MemoryKind::mixed: return "mixed";
  }
  return "";
}

Memory where(const void* pointer) noexcept {
  const Driver* driver = Driver::get();
  return driver && pointer ? where_on(*driver, reinterpret_cast<std::uintptr_t>(pointer)) : Memory{};
}

Memory where(const Layout& layout, const void* user) noexcept {
  const Driver* driver = Driver::get();
  if (!driver || !layout.root()) return {};
  const Address start = reinterpret_cast<std::uintptr_t>(user);
  const Memory first = where_on(*driver, start + static_cast<Address>(layout.offset()));
  const Address low = start + static_cast<Address>(layout.low()),
                last = start + static_cast<Address>(layout.high()) - 1;
  if (first.size != 0 && holds(first, low) && holds(first, last)) return first;
  // Host memory has no allocation range in the driver. The blocks of a layout around a host buffer are in that buffer
  // or in other host memory, so it is enough to query both ends. Only absolute addresses can point anywhere; they are
  // queried one by one.
  if (layout.contiguous() || (first.kind == MemoryKind::host && user != nullptr)) {
    const auto as_first = [&](Address address) {
      const Memory there = where_on(*driver, address);
      return there.kind == first.kind && there.context == first.context;
    };
    const bool at_low = layout.low() == layout.offset() || as_first(low);
    if (at_low && as_first(last)) return first;
  }
  Memory common = first, current = first;
  common.base = common.size = common.buffer_id = 0;
  int questions = 0;
  const auto same = [&](Address address) {
    if (current.size == 0 || !holds(current, address)) {
      if (++questions > max_questions) return false;
      current = where_on(*driver, address);
    }
    return current.kind == common.kind && current.context == common.context && current.to_device == common.to_device;
  };
  const bool all = for_each_block(*layout.root(), layout.offset(), [&](std::int64_t offset, std::int64_t length) {
    return same(start + static_cast<Address>(offset)) && same(start + static_cast<Address>(offset + length) - 1);
  });
  if (!all) common.kind = MemoryKind::mixed;
  return common;
}

bool moved_by_gpu(const Memory& memory, const Layout& layout, const void* user) noexcept {
  if (memory.kind == MemoryKind::device) return true;
  if (memory.kind != MemoryKind::managed || !memory.context) return false;
  const Driver* driver = Driver::get();
  if (!driver) return false;
  const Address start = reinterpret_cast<std::uintptr_t>(user) + static_cast<Address>(layout.low());
  const std::size_t bytes = static_cast<std::size_t>(layout.high() - layout.low());
  constexpr int cpu = -1;  // CU_DEVICE_CPU; "no device" and "not the same everywhere" are -2
  for (const int which : {range_attribute::last_prefetch_location, range_attribute::preferred_location}) {
    int location = -2;
    if (driver->cuMemRangeGetAttribute(&location, sizeof location, which, start, bytes) != code::success) continue;
    if (location >= 0) return true;
    if (location == cpu) return false;
  }
  return true;
}

}  // namespace bestride::cuda
