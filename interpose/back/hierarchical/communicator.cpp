// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/communicator.hpp"

#include <atomic>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "base/message.hpp"
#include "interpose/back/calls.hpp"
#include "interpose/back/communicators.hpp"
#include "interpose/back/fail.hpp"
#include "interpose/back/hierarchical/queue.hpp"

namespace bestride {
namespace {

/// One agreement at a time in a process, or two communicators could get one tag. Who finds it taken says so, and its communicator's
/// members try again at another call.
std::mutex agreeing;
int next_tag = 1;  ///< under `agreeing`
std::atomic<std::int64_t> cache_given{0};  ///< bytes of this process's share of its node's cache that its communicators have

/// A process has an equal share of its node's cache, and gives a communicator half of what is left of it, so that there is always something for
/// the next. So all communicators of a node together stay within what the user allows, whichever of its ranks they have.
std::int64_t cache_to_give(const Job& job) noexcept {
  return (job.settings.cache_bytes / job.topology.most_on_a_node() - cache_given.load(std::memory_order_relaxed)) / 2;
}

/// What is kept of allgathers pays where the wire is slower than memory; differences, which are worked out for each other node, where it is slower still.
CacheLimits cache_limits(const LinkCosts& link, std::int64_t budget, int nodes) noexcept {
  CacheLimits limits;
  if (link.wire_byte_s < 2 * link.copy_byte_s || budget < 2 * limits.least_bytes) return limits;
  limits.budget = budget / 4096 * 4096;
  limits.delta = link.wire_byte_s > nodes * link.copy_byte_s;
  return limits;
}

/// Of the communicator; nothing if it lies on one node, or has members outside of MPI_COMM_WORLD.
std::optional<Topology> topology_of(const Job& job, CommEntry& entry, std::vector<int>* world_ranks) {
  for (int rank = 0; rank < entry.size(); ++rank) world_ranks->push_back(entry.world_rank(rank));
  std::optional<Topology> topology = job.topology.restricted(*world_ranks);
  return topology && topology->nodes() > 1 ? std::move(topology) : std::nullopt;
}

}  // namespace

void CommCollectives::agree(MPI_Comm comm, CommEntry& entry) noexcept {
  const Job* all = job();
  if (!all || state_.load(std::memory_order_acquire) == agreed) return;
  if (entry.size() < 2) return state_.store(agreed, std::memory_order_release);  // also an inter-communicator
  // This member can't; the least tag it could take; less than what it has for the cache.
  std::int64_t mine[3] = {0, 0, 0}, most[3] = {1, 0, 0};
  std::vector<int> world_ranks;
  std::optional<Topology> topology;
  std::shared_ptr<CollectiveQueue> queue;
  const std::unique_lock lock(agreeing, std::try_to_lock);
  try {
    topology = topology_of(*all, entry, &world_ranks);
    if (!topology) return state_.store(agreed, std::memory_order_release);
    shape_ = shape_of(Collective::allgather, 0, true, *topology);
    queue = std::make_shared<CollectiveQueue>(std::move(*topology), entry.rank(), all->wire, std::move(world_ranks), all->settings.window_limit);
  } catch (...) {
    mine[0] = 1;
  }
  if (!lock)
    mine[0] = 1;
  else
    mine[1] = next_tag;
  mine[2] = -cache_to_give(*all);
  if (real.Allreduce(mine, most, 3, MPI_INT64_T, MPI_MAX, comm) != MPI_SUCCESS || most[0]) return;
  next_tag = static_cast<int>(most[1]) + 1;
  if (most[1] > all->largest_tag) {
    say_once("tags", "too many communicators for hierarchical collectives; those of newer ones are left to the MPI library");
    return state_.store(agreed, std::memory_order_release);
  }
  queue->set_tag(static_cast<int>(most[1]));
  // Of the emptiest node: an arena is of the same size on all.
  const int givers = queue->topology().least_on_a_node();
  queue->set_cache(cache_limits(all->settings.parameters.link, -most[2] * givers, queue->topology().nodes()));
  cache_share_ = (queue->cache().budget + givers - 1) / givers;
  cache_given.fetch_add(cache_share_, std::memory_order_relaxed);
  for (int what = 0; what < collective_count; ++what)
    for (int form = 0; form < 2; ++form) {
      CollectiveShape shape = shape_;
      shape.what = static_cast<Collective>(what);
      shape.blocking = form == 1;
      std::int64_t& least = least_[what][form];
      least = std::numeric_limits<std::int64_t>::max();
      for (shape.bytes = 1; shape.bytes <= std::int64_t{1} << 40; shape.bytes *= 2)
        if (all->chooser.choose(shape).hierarchical) {
          least = shape.bytes / 2 + 1;
          break;
        }
    }
  queue_ = std::move(queue);
  state_.store(agreed, std::memory_order_release);
}

CommCollectives::~CommCollectives() {
  cache_given.fetch_sub(cache_share_, std::memory_order_relaxed);
}

CollectiveQueue* CommCollectives::choose(MPI_Comm comm, CommEntry& entry, Collective what, std::int64_t bytes, bool blocking, bool may_wait,
                                         CollectiveChoice* choice) noexcept {
  if (state_.load(std::memory_order_acquire) != agreed) {
    if (may_wait) agree(comm, entry);
    if (state_.load(std::memory_order_acquire) != agreed) return nullptr;
  }
  if (!queue_ || bytes < least_[static_cast<int>(what)][blocking] || queue_->refused()) return nullptr;
  CollectiveShape shape = shape_;
  shape.what = what;
  shape.bytes = bytes;
  shape.blocking = blocking;
  *choice = job() ? job()->chooser.choose(shape) : CollectiveChoice{};
  return choice->hierarchical ? queue_.get() : nullptr;
}

}  // namespace bestride
