// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/plan_cache.hpp"

#include <pthread.h>

#include <new>

#include "base/message.hpp"
#include "interpose/mpi/fault_injection.hpp"

namespace bestride::inline interpose {

thread_local constinit PlanCache* thread_cache __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

/// A pthread key is used rather than a C++ thread-local destructor, which would prevent this object from being unloaded
/// and would run before the application's own destructors.
pthread_key_t thread_key;
const bool thread_key_made = pthread_key_create(&thread_key, [](void* cache) {
                               thread_cache = nullptr;
                               delete static_cast<PlanCache*>(cache);
                             }) == 0;

PlanCache* make_cache() noexcept {
  auto* cache = thread_key_made && !inject_failure(FailPoint::thread) ? new (std::nothrow) PlanCache : nullptr;
  if (!cache || pthread_setspecific(thread_key, cache) != 0) {
    delete cache;
    warn_once("thread", "no memory for a thread's plans; its calls are left to the MPI library");
    return nullptr;
  }
  return thread_cache = cache;
}

Plan* remember(PlanCache& cache, std::uint64_t definition, std::int64_t count, PlanRef plan) noexcept {
  if (!plan) return nullptr;
  PlanCache::Slot& slot = cache.slot(definition, count);
  slot.definition = definition;
  slot.count = count;
  slot.plan = std::move(plan);
  return slot.plan.get();
}

}  // namespace

Plan* find_plan_slowly(TypeEntry& type, std::int64_t count) noexcept {
  PlanCache* cache = thread_cache ? thread_cache : make_cache();
  if (!cache) return nullptr;
  if (type.definition_id() == 0) {
    if (!type.define(count)) return nullptr;
    if (Plan* const known = find_plan_of_thread(type.definition_id(), count)) return known;
  }
  PlanRef plan = type.plan(count);
  return remember(*cache, type.definition_id(), count, std::move(plan));
}

Plan* find_plan_slowly(TypeDefinition& definition, std::int64_t count) noexcept {
  PlanCache* cache = thread_cache ? thread_cache : make_cache();
  if (!cache) return nullptr;
  PlanRef plan = definition.find(count);
  if (!plan && definition.seen_before(count, TypeDefinition::SeenBy::engine)) plan = definition.make(count);
  return remember(*cache, definition.id(), count, std::move(plan));
}

}  // namespace bestride::inline interpose
