// SPDX-License-Identifier: Apache-2.0
#pragma once
// PlanCache: the plans that this thread used last. A direct-mapped table by (type, count), read without a lock or an
// atomic addition.
//
// A slot holds a reference, so its plan lives until another plan takes the slot. The key contains the type's id, which
// is never used again: a plan of a freed type is not mistaken for one of a new type with the same handle, and nothing
// has to be invalidated. The table is on the heap and is freed with the thread; one pointer to it is in initial-exec
// thread-local storage.
#include <cstdint>

#include "interpose/objects/plan.hpp"
#include "interpose/objects/type_registry.hpp"

namespace bestride::inline interpose {

struct PlanCache {
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

extern thread_local constinit PlanCache* thread_cache __attribute__((tls_model("initial-exec")));

/// The plan for `count` > 0 elements; nullptr: leave the call to MPI. Valid until this thread asks for another plan,
/// and as long as a PlanRef to it exists.
Plan* find_plan_slowly(TypeEntry& type, std::int64_t count) noexcept;
inline Plan* find_plan(TypeEntry& type, std::int64_t count) noexcept {
  if (PlanCache* cache = thread_cache) {
    const PlanCache::Slot& slot = cache->slot(type.id(), count);
    if (slot.type_id == type.id() && slot.count == count) return slot.plan.get();
  }
  return find_plan_slowly(type, count);
}

}  // namespace bestride::inline interpose
