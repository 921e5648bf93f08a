// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/gpu/posted.hpp"

#include <mutex>
#include <vector>

#include "interpose/back/calls.hpp"
#include "interpose/back/gpu/together.hpp"
#include "interpose/back/unseen.hpp"

namespace bestride {

constinit std::atomic<int> posted{0};

namespace {

/// So many at most are packed in one go.
constexpr std::size_t most_posted = 512;

struct Post {
  MPI_Request request;
  StagingPtr staging;
};
struct Queue {
  std::mutex mutex;
  std::vector<Post> posts;
};
Queue& queue() noexcept {
  static Queue* const one = new Queue;  // never destroyed: MPI may be called from destructors
  return *one;
}

/// This thread is packing or starting: what that calls in MPI comes by the same entries.
thread_local constinit bool starting __attribute__((tls_model("initial-exec"))) = false;

void start_locked(std::vector<Post>& posts) noexcept {
  starting = true;
  {
    Together together;
    for (Post& each : posts) Together::move(each.staging, cuda::Direction::pack, 0, each.staging->size());
    together.conclude();
  }
  // In the order of their posting, which is the order of their matching.
  for (Post& each : posts)
    if (!each.staging->failed() && next.Start(&each.request) != MPI_SUCCESS) each.staging->set_failed(true);
  posts.clear();
  starting = false;
  posted.store(0, std::memory_order_release);
}

}  // namespace

bool post(MPI_Request request, StagingPtr staging) noexcept try {
  if (starting) return false;
  watch_unseen_calls();
  Queue& all = queue();
  const std::lock_guard lock(all.mutex);
  all.posts.push_back({request, std::move(staging)});
  posted.store(static_cast<int>(all.posts.size()), std::memory_order_release);
  if (all.posts.size() >= most_posted) start_locked(all.posts);
  return true;
} catch (...) {
  return false;
}

void start_posted_now() noexcept {
  if (starting) return;
  Queue& all = queue();
  const std::lock_guard lock(all.mutex);
  start_locked(all.posts);
}

void start_posted_unless_busy() noexcept {
  if (posted.load(std::memory_order_acquire) == 0 || starting) return;
  Queue& all = queue();
  const std::unique_lock lock(all.mutex, std::try_to_lock);
  if (lock) start_locked(all.posts);
}

}  // namespace bestride
