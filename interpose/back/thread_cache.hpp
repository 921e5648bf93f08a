// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plans this thread used last: a direct-mapped table by (type, count), read without a lock or an atomic addition.
//
// A slot holds a reference, so its plan lives until the slot is taken by another; the type's id, never used again, tells a plan
// of a freed type from one of a new type with the same handle, so nothing has to be invalidated. One pointer of initial-exec
// thread-local storage; the table itself is on the heap and goes with the thread.
#include <cstdint>

#include "interpose/back/plan.hpp"
#include "interpose/back/types.hpp"

namespace bestride {

struct ThreadCache {
  static constexpr unsigned slots_log = 6;
  struct Slot {
    std::uint64_t type_id = 0;
    std::int64_t count = 0;
    PlanRef plan;
  };
  Slot slots[1u << slots_log];

  Slot& slot(std::uint64_t id, std::int64_t count) noexcept {
    const std::uint64_t mixed = (id ^ (static_cast<std::uint64_t>(count) << 20)) * 0x9E3779B97F4A7C15u;
    return slots[mixed >> (64 - slots_log)];
  }
};

extern thread_local constinit ThreadCache* thread_cache __attribute__((tls_model("initial-exec")));

/// The plan for `count` > 0 elements, or nullptr: leave the call to MPI. Valid until this thread asks for another plan, and as
/// long as a PlanRef made from it lives.
Plan* find_plan_slowly(TypeEntry& type, std::int64_t count) noexcept;
inline Plan* find_plan(TypeEntry& type, std::int64_t count) noexcept {
  if (ThreadCache* cache = thread_cache) {
    const ThreadCache::Slot& slot = cache->slot(type.id(), count);
    if (slot.type_id == type.id() && slot.count == count) return slot.plan.get();
  }
  return find_plan_slowly(type, count);
}

}  // namespace bestride
