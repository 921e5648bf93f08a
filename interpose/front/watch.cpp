// SPDX-License-Identifier: Apache-2.0
#include "interpose/front/watch.hpp"

#include <atomic>

#include "interpose/front/slots.hpp"

namespace bestride::front {
namespace {

std::atomic<void (*)()> watcher{nullptr};
std::atomic<void*> engaged[most_slots];  ///< the back's entry, or null
std::atomic<void*> targets[most_slots];

bool may_be_watched(unsigned index) noexcept { return !engaged[index].load() && !slot_is_local(index); }

/// After a slot was led elsewhere: the back may have engaged it meanwhile, which stands. Sequentially consistent, as is engage_slot(): one
/// of the two threads sees the other's store.
void keep_engaged(unsigned index) noexcept {
  if (void* entry = engaged[index].load()) lead_slot(index, entry);
}

}  // namespace

void engage_slot(unsigned index, void* entry) noexcept {
  engaged[index].store(entry);
  lead_slot(index, entry);
}

void watch(void (*before)()) noexcept {
  void (*nobody)() = nullptr;
  if (!watcher.compare_exchange_strong(nobody, before)) return;
  for (unsigned index = 0; index < slot_count(); ++index)
    if (may_be_watched(index)) {
      if (void* target = slot_target(index)) targets[index].store(target, std::memory_order_release);
      lead_slot_back(index);
      keep_engaged(index);
    }
}

void settle_slot(unsigned index, void* target) noexcept {
  if (may_be_watched(index)) targets[index].store(target, std::memory_order_release);
  if (!watcher.load() || !may_be_watched(index)) lead_slot(index, target);
  // Either this thread sees the watcher now, or watch() has yet to lead this slot back.
  if (watcher.load() && may_be_watched(index)) lead_slot_back(index);
  keep_engaged(index);
}

void* watched_target(unsigned index) noexcept {
  if (void* entry = engaged[index].load()) return entry;
  return targets[index].load(std::memory_order_acquire);
}

void tell_watcher(unsigned index) noexcept {
  if (void (*before)() = watcher.load(); before && may_be_watched(index)) before();
}

}  // namespace bestride::front
