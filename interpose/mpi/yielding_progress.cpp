// SPDX-License-Identifier: Apache-2.0
#include "interpose/mpi/yielding_progress.hpp"

#include <sched.h>

#include <atomic>

#include "interpose/mpi/functions.hpp"
#include "interpose/mpi/imports.hpp"

namespace bestride::inline interpose {
namespace {

/// ucp_worker_progress of UCX: makes progress and returns the number of events that it handled.
using Progress = unsigned(void* worker);

void* library_progress = nullptr;
constinit std::atomic<bool> replaced{false};

unsigned progress_or_yield(void* worker) {
  const unsigned events = reinterpret_cast<Progress*>(library_progress)(worker);
  if (events == 0) sched_yield();
  return events;
}

}  // namespace

bool yield_when_idle() noexcept {
  const bool done = replace_import(reinterpret_cast<const void*>(real.Wait), "ucp_worker_progress",
                                   reinterpret_cast<void*>(&progress_or_yield), &library_progress) != nullptr;
  replaced.store(done, std::memory_order_relaxed);
  return done;
}

bool yields_when_idle() noexcept { return replaced.load(std::memory_order_relaxed); }

}  // namespace bestride::inline interpose
