// SPDX-License-Identifier: Apache-2.0
// Driver entries: allocations and pointer attributes.
#include "tests/fake_cuda/memory.hpp"
#include "tests/fake_cuda/stream.hpp"

using namespace fake;
namespace abi = bestride::cuda;

namespace {

constexpr unsigned bit(Kind kind) { return 1u << static_cast<int>(kind); }

/// Writes attribute `what` of the allocation at `address`; zero if there is none, like the driver.
Code write_attribute(int what, void* data, const Allocation* found, Address address) {
  const bool on_host = found && (found->kind == Kind::pinned || found->kind == Kind::registered);
  switch (what) {
    case abi::attribute::context: *static_cast<void**>(data) = found ? found->context : nullptr; return code::success;
    case abi::attribute::memory_type:
      *static_cast<unsigned*>(data) = !found ? 0 : on_host ? abi::memory_type::host : abi::memory_type::device;
      return code::success;
    case abi::attribute::device_pointer: *static_cast<Address*>(data) = found ? address : 0; return code::success;
    case abi::attribute::buffer_id:
      *static_cast<std::uint64_t*>(data) = found ? found->buffer_id : 0;
      return code::success;
    case abi::attribute::is_managed:
      *static_cast<unsigned*>(data) = found && found->kind == Kind::managed;
      return code::success;
    case abi::attribute::device_ordinal: *static_cast<int*>(data) = found ? found->device : -2; return code::success;
    case abi::attribute::range_start: *static_cast<Address*>(data) = found ? found->base : 0; return code::success;
    case abi::attribute::range_size: *static_cast<std::size_t*>(data) = found ? found->size : 0; return code::success;
    default: return code::invalid_value;
  }
}

Code allocate_here(const char* entry, Kind kind, std::size_t size, Address* address) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context(entry, &context)) return failed;
  return allocate(kind, size, context, context->device, address);
}

/// Waits for the work of the context before it frees the memory, like the driver.
Code free_here(const char* entry, Address address, unsigned kinds) {
  if (const Code failed = entered(entry)) return failed;
  if (address == 0) return code::success;
  Context* owner = nullptr;
  {
    const std::shared_lock lock(memory_mutex());
    const Allocation* found = allocation_at(address);
    owner = found ? found->context : nullptr;
  }
  if (owner) synchronize(owner);
  return release(address, kinds);
}

}  // namespace

extern "C" {
#pragma GCC visibility push(default)

Code cuMemAlloc_v2(Address* address, std::size_t size) {
  return allocate_here("cuMemAlloc_v2", Kind::device, size, address);
}
Code cuMemAllocManaged(Address* address, std::size_t size, unsigned) {
  return allocate_here("cuMemAllocManaged", Kind::managed, size, address);
}
Code cuMemHostAlloc(void** address, std::size_t size, unsigned) {
  return allocate_here("cuMemHostAlloc", Kind::pinned, size, reinterpret_cast<Address*>(address));
}
Code cuMemAllocHost_v2(void** address, std::size_t size) { return cuMemHostAlloc(address, size, 0); }
Code cuMemFree_v2(Address address) {
  return free_here("cuMemFree_v2", address, bit(Kind::device) | bit(Kind::managed) | bit(Kind::pooled));
}
Code cuMemFreeHost(void* address) {
  return free_here("cuMemFreeHost", reinterpret_cast<Address>(address), bit(Kind::pinned));
}

Code cuMemAllocAsync(Address* address, std::size_t size, void*) {
  return allocate_here("cuMemAllocAsync", Kind::pooled, size, address);
}
Code cuMemFreeAsync(Address address, void* handle) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuMemFreeAsync", &context)) return failed;
  Stream* stream = stream_of(handle, context);
  if (!stream) return code::invalid_handle;
  submit(stream, [address] { return release(address, bit(Kind::pooled)); });
  return code::success;
}

Code cuIpcGetMemHandle(Shared* handle, Address address) {
  if (const Code failed = entered("cuIpcGetMemHandle")) return failed;
  return share(address, handle);
}
/// The driver takes 64 bytes by value, on the stack. A struct larger than two registers is passed in the same way.
struct IpcHandle {
  Shared what;
  char rest[64 - sizeof(Shared)];
};
Code cuIpcOpenMemHandle_v2(Address* address, IpcHandle handle, unsigned) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuIpcOpenMemHandle_v2", &context)) return failed;
  return map_shared(handle.what, context, address);
}
Code cuIpcCloseMemHandle(Address address) { return free_here("cuIpcCloseMemHandle", address, bit(Kind::shared)); }

Code cuMemHostRegister_v2(void* address, std::size_t size, unsigned) {
  Context* context = nullptr;
  if (const Code failed = entered_with_context("cuMemHostRegister_v2", &context)) return failed;
  return register_host(reinterpret_cast<Address>(address), size, context);
}
Code cuMemHostUnregister(void* address) {
  return free_here("cuMemHostUnregister", reinterpret_cast<Address>(address), bit(Kind::registered));
}

Code cuMemGetInfo_v2(std::size_t* available, std::size_t* total) {
  if (const Code failed = entered("cuMemGetInfo_v2")) return failed;
  *available = *total = std::size_t{16} << 30;
  return code::success;
}

Code cuPointerGetAttributes(unsigned count, int* attributes, void** data, Address pointer) {
  if (const Code failed = entered_anyhow("cuPointerGetAttributes")) return failed;
  const std::shared_lock lock(memory_mutex());
  const Allocation* found = allocation_at(pointer);
  for (unsigned i = 0; i < count; ++i)
    if (const Code wrong = write_attribute(attributes[i], data[i], found, pointer)) return wrong;
  return code::success;
}

Code cuPointerGetAttribute(void* data, int what, Address pointer) {
  if (const Code failed = entered("cuPointerGetAttribute")) return failed;
  const std::shared_lock lock(memory_mutex());
  const Allocation* found = allocation_at(pointer);
  return found ? write_attribute(what, data, found, pointer) : code::invalid_value;
}

Code cuMemRangeGetAttribute(void* data, std::size_t size, int what, Address base, std::size_t bytes) {
  if (const Code failed = entered("cuMemRangeGetAttribute")) return failed;
  const std::shared_lock lock(memory_mutex());
  const Allocation* found = allocation_at(base);
  if (!found || found->kind != Kind::managed || base - found->base + bytes > found->size || size != sizeof(int))
    return code::invalid_value;
  if (what != abi::range_attribute::preferred_location && what != abi::range_attribute::last_prefetch_location)
    return code::invalid_value;
  *static_cast<int*>(data) = what == abi::range_attribute::preferred_location ? found->preferred : found->last_prefetch;
  return code::success;
}

Code cuMemPrefetchAsync(Address base, std::size_t, int device, void*) {
  if (const Code failed = entered("cuMemPrefetchAsync")) return failed;
  const std::unique_lock lock(memory_mutex());
  Allocation* found = allocation_at(base);
  if (!found || found->kind != Kind::managed) return code::invalid_value;
  found->last_prefetch = device;
  return code::success;
}

Code cuMemAdvise(Address base, std::size_t, int advice, int device) {
  if (const Code failed = entered("cuMemAdvise")) return failed;
  const std::unique_lock lock(memory_mutex());
  Allocation* found = allocation_at(base);
  if (!found || found->kind != Kind::managed) return code::invalid_value;
  constexpr int set_preferred = 3, unset_preferred = 4;
  if (advice == set_preferred) found->preferred = device;
  if (advice == unset_preferred) found->preferred = -2;
  return code::success;
}

#pragma GCC visibility pop
}
