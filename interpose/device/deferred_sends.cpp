// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/deferred_sends.hpp"

#include <mutex>
#include <vector>

#include "interpose/device/pre_call_hook.hpp"
#include "interpose/device/transfer_batch.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {

constinit std::atomic<int> deferred_send_count{0};

namespace {

/// Upper limit of queued sends; when it is reached, they are packed and started.
constexpr std::size_t deferred_send_limit = 512;

struct DeferredSend {
  MPI_Request request;
  StagingPtr staging;
};
struct Queue {
  std::mutex mutex;
  std::vector<DeferredSend> posts;
};
Queue& queue() noexcept {
  static Queue* const one = new Queue;  // never destroyed: MPI may be called from destructors
  return *one;
}

/// True while this thread packs or starts the sends: its MPI calls reach the same entries again.
thread_local constinit bool starting __attribute__((tls_model("initial-exec"))) = false;

void start_locked(std::vector<DeferredSend>& posts) noexcept {
  starting = true;
  {
    TransferBatch batch;
    for (DeferredSend& each : posts) TransferBatch::move(each.staging, Direction::pack, 0, each.staging->size());
    batch.flush();
  }
  // In the order in which they were queued, because this is the order in which they match.
  for (DeferredSend& each : posts)
    if (!each.staging->failed() && next.Start(&each.request) != MPI_SUCCESS) each.staging->set_failed(true);
  posts.clear();
  starting = false;
  deferred_send_count.store(0, std::memory_order_release);
}

}  // namespace

bool defer_send(MPI_Request request, StagingPtr staging) noexcept try {
  if (starting) return false;
  install_pre_call_hook();
  Queue& all = queue();
  const std::lock_guard lock(all.mutex);
  all.posts.push_back({request, std::move(staging)});
  deferred_send_count.store(static_cast<int>(all.posts.size()), std::memory_order_release);
  if (all.posts.size() >= deferred_send_limit) start_locked(all.posts);
  return true;
} catch (...) {
  return false;
}

void start_deferred_sends_now() noexcept {
  if (starting) return;
  Queue& all = queue();
  const std::lock_guard lock(all.mutex);
  start_locked(all.posts);
}

void start_deferred_sends_unless_busy() noexcept {
  if (deferred_send_count.load(std::memory_order_acquire) == 0 || starting) return;
  Queue& all = queue();
  const std::unique_lock lock(all.mutex, std::try_to_lock);
  if (lock) start_locked(all.posts);
}

}  // namespace bestride::inline interpose
