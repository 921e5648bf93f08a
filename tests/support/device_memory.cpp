// SPDX-License-Identifier: Apache-2.0
#include "tests/support/device_memory.hpp"

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace bestride::test {
namespace {

std::atomic<bool> tolerant{false};

void give_up(const char* what, int code) {
  if (tolerant) return;
  std::fprintf(stderr, "CUDA driver error in the test itself: %s: %d\n", what, code);
  std::_Exit(3);
}

void* library() {
  static void* const handle = [] {
    void* opened = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!opened) give_up(dlerror(), 0);
    return opened;
  }();
  return handle;
}

template <class... A>
void call(const char* name, A... arguments) {
  const auto entry = reinterpret_cast<int (*)(A...)>(dlsym(library(), name));
  const int code = entry ? entry(arguments...) : -1;
  if (code != 0) give_up(name, code);
}

std::atomic<int> set_place{-1};

void use_device() {
  static void* const context = [] {
    void* made = nullptr;
    call("cuInit", 0u);
    call("cuDevicePrimaryCtxRetain", &made, 0);
    return made;
  }();
  call("cuCtxSetCurrent", context);
}

}  // namespace

DeviceMemory::DeviceMemory(MemoryPlace place, std::size_t size) : place_(place), size_(size) {
  use_device();
  std::uint64_t address = 0;
  switch (place) {
    case MemoryPlace::pinned: call("cuMemHostAlloc", reinterpret_cast<void**>(&data_), size, 1u); return;
    case MemoryPlace::managed: call("cuMemAllocManaged", &address, size, 1u); break;
    default: call("cuMemAlloc_v2", &address, size);
  }
  data_ = reinterpret_cast<std::byte*>(address);
}

void DeviceMemory::write(const void* from) const {
  use_device();
  call("cuMemcpyHtoD_v2", reinterpret_cast<std::uint64_t>(data_), from, size_);
  call("cuCtxSynchronize");
}

void DeviceMemory::read(void* to) const {
  use_device();
  call("cuMemcpyDtoH_v2", to, reinterpret_cast<std::uint64_t>(data_), size_);
}

void DeviceMemory::release() {
  if (!data_) return;
  use_device();
  if (place_ == MemoryPlace::pinned)
    call("cuMemFreeHost", static_cast<void*>(data_));
  else
    call("cuMemFree_v2", reinterpret_cast<std::uint64_t>(data_));
  data_ = nullptr;
}

void tolerate_driver_errors() { tolerant = true; }

MemoryPlace next_memory_place() {
  if (set_place >= 0) return static_cast<MemoryPlace>(set_place.load());
  static const std::string_view wanted = [] {
    const char* said = std::getenv("TEST_MEMORY");
    return std::string_view(said ? said : "host");
  }();
  if (wanted == "host") return MemoryPlace::host;
  if (wanted == "pinned") return MemoryPlace::pinned;
  if (wanted == "managed") return MemoryPlace::managed;
  if (wanted == "device") return MemoryPlace::device;
  // Five turns, because buffers are created in pairs: with an odd number, each kind is combined with others.
  static std::atomic<unsigned> turn{0};
  constexpr MemoryPlace turns[] = {MemoryPlace::device, MemoryPlace::host, MemoryPlace::managed, MemoryPlace::device,
                                   MemoryPlace::pinned};
  return turns[turn++ % 5];
}

void set_memory_place(MemoryPlace place) { set_place = static_cast<int>(place); }

void* driver_entry(const char* name) { return dlsym(library(), name); }

}  // namespace bestride::test
