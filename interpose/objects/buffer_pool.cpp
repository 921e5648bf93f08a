// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/buffer_pool.hpp"

#include <bit>
#include <cstdlib>

#include "interpose/mpi/fault_injection.hpp"

namespace bestride::inline interpose {

int BufferPool::class_of(std::int64_t bytes) noexcept {
  const int log = std::bit_width(static_cast<std::uint64_t>(bytes - 1));
  return log < smallest ? 0 : log - smallest;
}

BufferPool::~BufferPool() {
  for (Class& each : classes_)
    while (each.first) {
      Free* gone = each.first;
      each.first = gone->next;
      std::free(gone);
    }
}

void* BufferPool::take(std::int64_t bytes) noexcept {
  if (inject_failure(FailPoint::lease)) return nullptr;
  const int index = class_of(bytes);
  if (index >= classes - smallest) return nullptr;
  const std::int64_t size = std::int64_t{1} << (index + smallest);
  Class& here = classes_[static_cast<std::size_t>(index)];
  {
    const std::lock_guard lock(here.mutex);
    if (Free* found = here.first) {
      here.first = found->next;
      idle_.fetch_sub(size, std::memory_order_relaxed);
      return found;
    }
  }
  // Only pages that are used are ever touched, so above one page the rounding costs address space and no memory.
  return std::aligned_alloc(64, static_cast<std::size_t>(size));
}

void BufferPool::give_back(void* buffer, std::int64_t bytes) noexcept {
  const int index = class_of(bytes);
  const std::int64_t size = std::int64_t{1} << (index + smallest);
  if (idle_.fetch_add(size, std::memory_order_relaxed) + size > idle_limit_) {
    idle_.fetch_sub(size, std::memory_order_relaxed);
    std::free(buffer);
    return;
  }
  Class& here = classes_[static_cast<std::size_t>(index)];
  auto* free = static_cast<Free*>(buffer);
  const std::lock_guard lock(here.mutex);
  free->next = here.first;
  here.first = free;
}

}  // namespace bestride::inline interpose
