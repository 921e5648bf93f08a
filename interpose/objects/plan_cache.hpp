// SPDX-License-Identifier: Apache-2.0
#pragma once
// PlanCache: the plans that this thread used last. A direct-mapped table by (definition, count), read without a lock or
// an atomic addition.
//
// A slot holds a reference, so its plan lives until another plan takes the slot. The key contains the id of the type's
// definition, which is never used again: a plan of a freed type is not mistaken for one of a new type with the same
// handle, nothing has to be invalidated, and types with the same definition share a slot. The table is on the heap and
// is freed with the thread; one pointer to it is in initial-exec thread-local storage.
#include <cstdint>

#include "interpose/objects/plan.hpp"
#include "interpose/objects/type_registry.hpp"

namespace bestride::inline interpose {

struct PlanCache {
  static constexpr unsigned slots_log = 6;
  struct Slot {
    std::uint64_t definition = 0;  ///< its id; 0: the slot is empty
    std::int64_t count = 0;
    PlanRef plan;
  };
  Slot slots[1u << slots_log];

  Slot& slot(std::uint64_t definition, std::int64_t count) noexcept {
    const std::uint64_t mixed = (definition ^ (static_cast<std::uint64_t>(count) << 20)) * 0x9E3779B97F4A7C15u;
    return slots[mixed >> (64 - slots_log)];
  }
};

extern thread_local constinit PlanCache* thread_cache __attribute__((tls_model("initial-exec")));

/// The plan for `count` > 0 elements; nullptr: leave the call to MPI. Valid until this thread asks for another plan,
/// and as long as a PlanRef to it exists.
Plan* find_plan_slowly(TypeEntry& type, std::int64_t count) noexcept;
/// The plan of the definition with this id, if it has one (not 0) and this thread used the plan lately; else nullptr.
inline Plan* find_plan_of_thread(std::uint64_t definition, std::int64_t count) noexcept {
  PlanCache* const cache = thread_cache;
  if (!cache || definition == 0) return nullptr;
  const PlanCache::Slot& slot = cache->slot(definition, count);
  return slot.definition == definition && slot.count == count ? slot.plan.get() : nullptr;
}
inline Plan* find_plan(TypeEntry& type, std::int64_t count) noexcept {
  Plan* const known = find_plan_of_thread(type.definition_id(), count);
  return known ? known : find_plan_slowly(type, count);
}
/// The plan for `count` > 0 elements of a definition that is decoded and not opaque; nullptr: leave the call to MPI.
/// Makes no MPI call.
Plan* find_plan_slowly(TypeDefinition& definition, std::int64_t count) noexcept;
inline Plan* find_plan(TypeDefinition& definition, std::int64_t count) noexcept {
  Plan* const known = find_plan_of_thread(definition.id(), count);
  return known ? known : find_plan_slowly(definition, count);
}

}  // namespace bestride::inline interpose
