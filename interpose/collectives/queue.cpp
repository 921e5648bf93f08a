// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/queue.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "base/message.hpp"
#include "base/not_cancelled.hpp"
#include "interpose/collectives/requests.hpp"
#include "interpose/device/mpi_errors.hpp"
#include "interpose/message/record.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

constinit std::atomic<int> collectives_pending{0};
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

std::int64_t slot_bytes_of(const Topology& topology, std::int64_t window_limit, std::int64_t most_bytes) noexcept {
  const std::int64_t fit = window_limit / (2 * ChannelShape::slots * topology.max_ranks_per_node());
  return std::clamp<std::int64_t>(std::min(fit, most_bytes + 4095), 4096, CollectiveQueue::max_slot_bytes) / 4096 *
         4096;
}

std::vector<int> all_apart(int ranks) {
  std::vector<int> nodes(static_cast<std::size_t>(ranks));
  std::iota(nodes.begin(), nodes.end(), 0);
  return nodes;
}

/// One message.
Task send_small(Transport& transport, int rank, const void* data, std::int64_t bytes) {
  Transfer transfer = transport.send(rank, data, bytes);
  co_await until([&] { return transport.done(transfer); });
}
Task receive_small(Transport& transport, int rank, void* data, std::int64_t bytes) {
  Transfer transfer = transport.receive(rank, data, bytes);
  co_await until([&] { return transport.done(transfer); });
}

}  // namespace

CollectiveQueue::CollectiveQueue(Topology topology, int rank, MPI_Comm private_comm, std::vector<int> world_ranks,
                                 std::int64_t window_limit, std::int64_t most_bytes)
    : topology_(std::move(topology)),
      rank_(rank),
      slot_bytes_(slot_bytes_of(topology_, window_limit, most_bytes)),
      transport_(private_comm, std::move(world_ranks)) {}

Task CollectiveQueue::make_hierarchy() {
  const int node = topology_.node_of(rank_), local = topology_.local_rank_of(rank_);
  const auto here = topology_.ranks_on(node);
  const ChannelShape shape{static_cast<int>(here.size()), slot_bytes_};
  const bool alone = here.size() == 1, leads = local == 0;
  WindowKey key[2];  // of the channels' memory, and of the arena
  const bool keeps = cache_limits_.budget > 0;
  const auto arena_bytes = static_cast<std::size_t>(cache_limits_.budget);
  if (keeps && leads && !inject_failure(FailPoint::arena))
    arena_ = Window::create(arena_bytes, Window::Pages::on_demand);
  std::int32_t good = 1;
  if (!alone && leads) {
    if (!inject_failure(FailPoint::window)) window_ = Window::create(shape.bytes());
    key[0] = window_.key();
    key[1] = arena_.key();
    for (std::size_t i = 1; i < here.size(); ++i) co_await send_small(transport_, here[i], key, sizeof key);
    good = window_.data() != nullptr;
    for (std::size_t i = 1; i < here.size(); ++i) {
      std::int32_t theirs = 0;
      co_await receive_small(transport_, here[i], &theirs, sizeof theirs);
      good = good && theirs;
    }
    window_.close_descriptor();
  } else if (!alone) {
    co_await receive_small(transport_, here[0], key, sizeof key);
    window_ = Window::open(key[0]);
    if (keeps) arena_ = Window::open(key[1], Window::Pages::on_demand);
    good = window_.data() != nullptr;
    co_await send_small(transport_, here[0], &good, sizeof good);
  }
  // The first rank of each node reports to the first rank of node 0, which replies.
  if (leads && node == 0) {
    for (int other = 1; other < topology_.nodes(); ++other) {
      std::int32_t theirs = 0;
      co_await receive_small(transport_, topology_.ranks_on(other)[0], &theirs, sizeof theirs);
      good = good && theirs;
    }
    for (int other = 1; other < topology_.nodes(); ++other)
      co_await send_small(transport_, topology_.ranks_on(other)[0], &good, sizeof good);
  } else if (leads) {
    const int first = topology_.ranks_on(0)[0];
    co_await send_small(transport_, first, &good, sizeof good);
    co_await receive_small(transport_, first, &good, sizeof good);
  }
  if (!alone) {
    if (leads)
      for (std::size_t i = 1; i < here.size(); ++i) co_await send_small(transport_, here[i], &good, sizeof good);
    else
      co_await receive_small(transport_, here[0], &good, sizeof good);
  }
  if (good) {
    hierarchy_ = std::make_unique<Hierarchy>(topology_, rank_, transport_, Channels(window_.data(), shape, local));
    // A member without an arena stores nothing and finds nothing, but it must take part in each agreement.
    if (keeps)
      cache_ = std::make_unique<CollectiveCache>(
          CollectiveCache{CacheTable(cache_limits_, topology_.ranks()),
                          arena_.data() ? Arena(arena_.data(), cache_limits_.budget, arena_.descriptor()) : Arena()});
  } else {
    failed_ = true;
    window_ = Window();
    arena_ = Window();
    warn_once(
        "window",
        "no shared memory between the ranks of a node; collectives of its communicators are left to the MPI library");
    hierarchy_ = std::make_unique<Hierarchy>(Topology(all_apart(topology_.ranks())), rank_, transport_,
                                             Channels(nullptr, {1, slot_bytes_}, 0));
  }
}

bool CollectiveQueue::add(Operation& operation) noexcept {
  operation.ended.store(false, std::memory_order_relaxed);
  operation.failed = false;
  try {
    if (inject_failure(FailPoint::operation)) throw std::bad_alloc();
    const auto self = shared_from_this();
    Busy& all = busy();
    const std::lock_guard none_leaves(all.mutex);
    if (std::find(all.queues.begin(), all.queues.end(), self) == all.queues.end()) all.queues.push_back(self);
    const std::lock_guard lock(mutex_);
    operations_.push_back(&operation);
    collectives_pending.fetch_add(1);  // sequentially consistent: see progress_thread.cpp
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
  if (good) first.finish();
  first.failed = !good;
  if (cache_ && reporting()) record_cache(std::exchange(noted_, cache_->table.counts()), cache_->table.counts());
  const int tag = first.request_tag;
  first.ended.store(true, std::memory_order_release);
  // The operation may be destroyed from here on.
  if (tag >= 0) complete_request(tag, good);
  // Decremented after the request is complete: MPI_Wait of MPICH 4.0.2 does not see that another thread's message to
  // the same process has completed its request (measured). So a thread of the application may wait there only for a
  // request that is complete.
  collectives_pending.fetch_sub(1, std::memory_order_release);
}

void CollectiveQueue::step_locked() noexcept {
  while (!operations_.empty()) {
    Operation& first = *operations_.front();
    if (!under_way_) {
      try {
        making_ = !hierarchy_;
        first.cache = cache_.get();
        current_ = making_ ? make_hierarchy() : first.begin(*hierarchy_);
        under_way_ = true;
      } catch (...) {
        end_first(false);
        continue;
      }
    }
    const bool ended = current_.step();
    if (!ended && !transport_.broken()) return;
    under_way_ = false;
    const bool good = ended && !current_.failed();
    if (!making_ || !good) end_first(good);
  }
}

bool CollectiveQueue::step() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return true;
  const NotCancelled not_cancelled;
  stepping = true;
  step_locked();
  stepping = false;
  return !operations_.empty();
}

bool CollectiveQueue::run(Operation& operation) noexcept {
  // With more ranks than cores, the neighbour that is waited for may need this core.
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

void CollectiveQueue::finish() noexcept {
  poll_until_complete([this](int* flag) {
    transport_.poll();
    *flag = !step();
    return MPI_SUCCESS;
  });
}

void finish_collectives_of(MPI_Comm comm) noexcept {
  if (stepping) return;
  CommEntry* entry = runtime().comms.find(comm);
  const std::shared_ptr<CollectiveQueue> queue = entry ? entry->collectives.queue : nullptr;
  if (queue) queue->finish();
}

void progress_collectives() noexcept {
  if (stepping) return;
  Busy& all = busy();
  const std::unique_lock lock(all.mutex, std::try_to_lock);
  if (!lock) return;
  for (std::size_t i = 0; i < all.queues.size();) {
    if (all.queues[i]->step()) {
      ++i;
    } else {
      all.queues[i] = std::move(all.queues.back());
      all.queues.pop_back();
    }
  }
}

}  // namespace bestride::inline interpose
