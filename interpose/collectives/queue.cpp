// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/queue.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "base/not_cancelled.hpp"
#include "interpose/collectives/comm_collectives.hpp"
#include "interpose/collectives/comm_memory.hpp"
#include "interpose/collectives/neighbor_queue.hpp"
#include "interpose/collectives/requests.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

constinit std::atomic<int> collectives_pending{0};
constinit std::atomic<int> collectives_running{0};
constinit std::atomic<unsigned> progress_by_calls{0};

namespace {

/// Queues with work to do. Never destroyed: destructors may call MPI.
struct Busy {
  std::mutex mutex;
  std::vector<std::shared_ptr<CollectiveQueue>> queues;
};
Busy& busy() noexcept {
  alignas(Busy) static std::byte storage[sizeof(Busy)];
  static Busy* const one = new (storage) Busy;
  return *one;
}

/// True while this thread is inside a queue; MPI functions called there may call our own entries again.
thread_local constinit bool stepping __attribute__((tls_model("initial-exec"))) = false;

}  // namespace

bool CollectiveQueue::add(Operation& operation) noexcept {
  operation.ended.store(false, std::memory_order_relaxed);
  operation.failed = false;
  try {
    if (inject_failure(FailPoint::operation) || !operation.fill()) throw std::bad_alloc();
    const auto self = shared_from_this();
    Busy& all = busy();
    const std::lock_guard none_leaves(all.mutex);
    if (std::find(all.queues.begin(), all.queues.end(), self) == all.queues.end()) all.queues.push_back(self);
    const std::lock_guard lock(mutex_);
    operations_.push_back(&operation);
    collectives_pending.fetch_add(1, std::memory_order_release);
    collectives_running.fetch_add(1);  // sequentially consistent: see progress_thread.cpp
    return true;
  } catch (...) {
    warn_once("operation",
              "no memory to carry out a collective: the call that completes it returns MPI_ERR_OTHER, and other ranks "
              "may wait for this one");
    return false;
  }
}

void CollectiveQueue::end_first(bool good) noexcept {
  Operation& first = *operations_.front();
  operations_.pop_front();
  current_ = Task();
  first.failed = !good;
  first.next_ended = nullptr;
  *last_ended_ = &first;
  last_ended_ = &first.next_ended;
  note_end(first);
  collectives_running.fetch_sub(1, std::memory_order_release);
}

void CollectiveQueue::complete_ended() noexcept {
  while (Operation* const operation = first_ended_) {
    first_ended_ = operation->next_ended;
    if (!first_ended_) last_ended_ = &first_ended_;
    const bool good = !operation->failed;
    if (good) operation->finish();
    const int tag = operation->request_tag;
    operation->ended.store(true, std::memory_order_release);
    // The operation may be destroyed from here on.
    if (tag >= 0) complete_request(tag, good);
    // Decremented after the request is complete (quirks::wait_misses_other_threads).
    collectives_pending.fetch_sub(1, std::memory_order_release);
  }
}

void CollectiveQueue::step_locked(bool may_call_mpi) noexcept {
  while (!operations_.empty() && (may_call_mpi || !calls_mpi())) {
    Operation& first = *operations_.front();
    if (!under_way_) {
      try {
        making_ = !ready_for(first);
        current_ = making_ ? make() : begin(first);
        under_way_ = true;
      } catch (...) {
        end_first(false);
        continue;
      }
    }
    const bool ended = current_.step();
    if (!ended && !transport_.broken()) break;
    under_way_ = false;
    const bool good = ended && !current_.failed();
    if (!making_ || !good) end_first(good);
  }
  if (may_call_mpi) complete_ended();
}

bool CollectiveQueue::step(bool may_call_mpi) noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return true;
  const NotCancelled not_cancelled;
  stepping = true;
  step_locked(may_call_mpi);
  stepping = false;
  return !operations_.empty() || first_ended_;
}

bool CollectiveQueue::run(Operation& operation) noexcept {
  // With more ranks than cores, the neighbor that is waited for may need this core.
  for (int turn = 0; !operation.ended.load(std::memory_order_acquire); ++turn) {
    step();
    if (operation.ended.load(std::memory_order_acquire)) break;
    if (turn % 8 == 7) {
      progress_by_calls.fetch_add(1, std::memory_order_relaxed);
      transport_.poll();
      progress_collectives();
    }
    sched_yield();
  }
  shared_memory_failed_ = failed_;
  return !operation.failed;
}

bool CollectiveQueue::share_memory_now() noexcept {
  try {
    Task task = share_memory();
    for (int turn = 0; !task.step(); ++turn) {
      if (turn % 8 == 7) {
        transport_.poll();
        progress_collectives();
      }
      sched_yield();
    }
    if (!task.failed() && made()) return true;
  } catch (...) {
  }
  report_no_memory();
  return false;
}

void CollectiveQueue::finish() noexcept {
  poll_until_complete([this](int* flag) {
    transport_.poll();
    *flag = !step();
    return MPI_SUCCESS;
  });
}

void finish_collectives_of(MPI_Comm comm) noexcept {
  if (stepping) return;
  const CommEntry* const entry = runtime().comms.find(comm);
  if (!entry) return;
  if (const std::shared_ptr<CollectiveQueue> queue = collectives_of(*entry).queue) queue->finish();
  if (const std::shared_ptr<CollectiveQueue> queue = collectives_of(*entry).neighbor_queue) queue->finish();
}

void progress_collectives(bool may_call_mpi) noexcept {
  if (stepping) return;
  Busy& all = busy();
  const std::unique_lock lock(all.mutex, std::try_to_lock);
  if (!lock) return;
  for (std::size_t i = 0; i < all.queues.size();) {
    if (all.queues[i]->step(may_call_mpi)) {
      ++i;
    } else {
      all.queues[i] = std::move(all.queues.back());
      all.queues.pop_back();
    }
  }
}

}  // namespace bestride::inline interpose
