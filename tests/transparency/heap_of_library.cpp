// SPDX-License-Identifier: Apache-2.0
#include "heap_of_library.hpp"

#include <link.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

// The allocator of glibc, under the names that a replaced malloc leaves free.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* block);
}

namespace {

struct Range {
  std::uintptr_t first, end;
};

Range ranges[16];
std::atomic<int> range_count{0};
std::atomic<long> held{0};

// Open addressing with linear probing. A slot is 0 (never used), 1 (removed) or the address of a block.
constexpr std::size_t slot_count = std::size_t{1} << 22;
std::atomic<std::uintptr_t> slots[slot_count];

std::size_t first_slot(std::uintptr_t address) { return (address >> 4) * 0x9E3779B97F4A7C15u >> 42; }

bool of_library(const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  const int count = range_count.load(std::memory_order_acquire);
  for (int i = 0; i < count; ++i)
    if (address >= ranges[i].first && address < ranges[i].end) return true;
  return false;
}

void* allocated(void* block, const void* caller) {
  if (!block || !of_library(caller)) return block;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  for (std::size_t slot = first_slot(address), probes = 0;; slot = (slot + 1) % slot_count, ++probes) {
    if (probes == slot_count) std::abort();
    std::uintptr_t found = slots[slot].load(std::memory_order_relaxed);
    if (found <= 1 && slots[slot].compare_exchange_strong(found, address)) break;
  }
  held.fetch_add(static_cast<long>(malloc_usable_size(block)), std::memory_order_relaxed);
  return block;
}

void freed(void* block) {
  if (!block || range_count.load(std::memory_order_acquire) == 0) return;
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  for (std::size_t slot = first_slot(address), probes = 0; probes < slot_count;
       slot = (slot + 1) % slot_count, ++probes) {
    const std::uintptr_t found = slots[slot].load(std::memory_order_relaxed);
    if (found == 0) return;
    if (found != address) continue;
    held.fetch_sub(static_cast<long>(malloc_usable_size(block)), std::memory_order_relaxed);
    // A removed slot before a free one ends no probe sequence, so it becomes free again and probes stay short.
    const bool last = slots[(slot + 1) % slot_count].load(std::memory_order_relaxed) == 0;
    slots[slot].store(last ? 0 : 1, std::memory_order_relaxed);
    return;
  }
}

int add_object(dl_phdr_info* info, std::size_t, void*) {
  if (!std::strstr(info->dlpi_name, "libbestride")) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const int count = range_count.load();
    if (header.p_type != PT_LOAD || !(header.p_flags & PF_X) || count == 16) continue;
    ranges[count] = {info->dlpi_addr + header.p_vaddr, info->dlpi_addr + header.p_vaddr + header.p_memsz};
    range_count.store(count + 1, std::memory_order_release);
  }
  return 0;
}

}  // namespace

extern "C" {

__attribute__((noinline)) void* malloc(std::size_t size) noexcept {
  return allocated(__libc_malloc(size), __builtin_return_address(0));
}

__attribute__((noinline)) void* calloc(std::size_t count, std::size_t size) noexcept {
  return allocated(__libc_calloc(count, size), __builtin_return_address(0));
}

__attribute__((noinline)) void* realloc(void* block, std::size_t size) noexcept {
  freed(block);
  return allocated(__libc_realloc(block, size), __builtin_return_address(0));
}

__attribute__((noinline)) void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return allocated(__libc_memalign(alignment, size), __builtin_return_address(0));
}

__attribute__((noinline)) void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return allocated(__libc_memalign(alignment, size), __builtin_return_address(0));
}

__attribute__((noinline)) int posix_memalign(void** block, std::size_t alignment, std::size_t size) noexcept {
  void* const found = allocated(__libc_memalign(alignment, size), __builtin_return_address(0));
  if (!found) return ENOMEM;
  *block = found;
  return 0;
}

void free(void* block) noexcept {
  freed(block);
  __libc_free(block);
}

}  // extern "C"

namespace bestride::test {

bool count_heap_of_library() {
  dl_iterate_phdr(add_object, nullptr);
  return range_count.load() > 0;
}

long heap_of_library() { return held.load(std::memory_order_relaxed); }

}  // namespace bestride::test
