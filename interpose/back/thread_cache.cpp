// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/thread_cache.hpp"

#include <pthread.h>

#include <new>

#include "base/message.hpp"
#include "interpose/back/fail.hpp"

namespace bestride {

thread_local constinit ThreadCache* thread_cache __attribute__((tls_model("initial-exec"))) = nullptr;

namespace {

/// pthread keys rather than a C++ thread-local destructor: the latter would pin this object and run before the application's own.
pthread_key_t key;
const bool key_made = pthread_key_create(&key, [](void* cache) {
                        thread_cache = nullptr;
                        delete static_cast<ThreadCache*>(cache);
                      }) == 0;

ThreadCache* make_cache() noexcept {
  auto* cache = key_made && !fail_here(FailPoint::thread) ? new (std::nothrow) ThreadCache : nullptr;
  if (!cache || pthread_setspecific(key, cache) != 0) {
    delete cache;
    say_once("thread", "no memory for a thread's plans; its calls are left to the MPI library");
    return nullptr;
  }
  return thread_cache = cache;
}

}  // namespace

Plan* find_plan_slowly(TypeEntry& type, std::int64_t count) noexcept {
  ThreadCache* cache = thread_cache ? thread_cache : make_cache();
  if (!cache) return nullptr;
  PlanRef plan = type.plan(count);
  if (!plan) return nullptr;
  ThreadCache::Slot& slot = cache->slot(type.id(), count);
  slot.type_id = type.id();
  slot.count = count;
  slot.plan = std::move(plan);
  return slot.plan.get();
}

}  // namespace bestride
