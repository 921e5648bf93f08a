// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/watch.hpp"

#include <atomic>

#include "interpose/preload/slots.hpp"

namespace bestride::preload {
namespace {

std::atomic<void (*)()> watcher{nullptr};
std::atomic<void*> entries[max_slots];  ///< the backend's entry, or null
std::atomic<void*> targets[max_slots];

bool is_hookable(unsigned index) noexcept { return !entries[index].load() && !slot_needs_no_hook(index); }

/// Called after a slot was changed. If the backend has intercepted it meanwhile, restores the backend's entry. The
/// accesses here and in intercept_slot() are sequentially consistent, so one of the two threads sees the other's store.
void keep_intercepted(unsigned index) noexcept {
  if (void* entry = entries[index].load()) set_slot_target(index, entry);
}

}  // namespace

void intercept_slot(unsigned index, void* entry) noexcept {
  entries[index].store(entry);
  set_slot_target(index, entry);
}

void watch(void (*before)()) noexcept {
  void (*nobody)() = nullptr;
  if (!watcher.compare_exchange_strong(nobody, before)) return;
  for (unsigned index = 0; index < slot_count(); ++index)
    if (is_hookable(index)) {
      if (void* target = slot_target(index)) targets[index].store(target, std::memory_order_release);
      reset_slot(index);
      keep_intercepted(index);
    }
}

void resolve_slot(unsigned index, void* target) noexcept {
  if (is_hookable(index)) targets[index].store(target, std::memory_order_release);
  if (!watcher.load() || !is_hookable(index)) set_slot_target(index, target);
  // Either this thread sees the hook now, or watch() will still reset this slot to its thunk.
  if (watcher.load() && is_hookable(index)) reset_slot(index);
  keep_intercepted(index);
}

void* hooked_target(unsigned index) noexcept {
  if (void* entry = entries[index].load()) return entry;
  return targets[index].load(std::memory_order_acquire);
}

void call_hook(unsigned index) noexcept {
  if (void (*before)() = watcher.load(); before && is_hookable(index)) before();
}

}  // namespace bestride::preload
