// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/communicator.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <vector>

#include "base/message.hpp"
#include "interpose/back/calls.hpp"
#include "interpose/back/communicators.hpp"
#include "interpose/back/fail.hpp"
#include "interpose/back/hierarchical/queue.hpp"

namespace bestride {
namespace {

/// One agreement at a time in a process, or two communicators could get the same tags. Who finds it taken says so, and its communicator's
/// members try again at another call.
std::mutex agreeing;
int next_tags = 1;  ///< a pair of tags; under `agreeing`
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

/// The communicator has members on several nodes, and none outside of MPI_COMM_WORLD. Takes no memory: a member that could not say whether there is
/// anything to agree on would wait for others that don't come, or let them wait.
bool on_several_nodes(const Job& job, MPI_Comm comm, int size) noexcept {
  constexpr int at_once = 64;
  MPI_Group members = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  bool several = false, known = false;
  if (real.Comm_group(comm, &members) == MPI_SUCCESS && real.Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
    known = true;
    int first_node = -1;
    for (int first = 0; first < size && known; first += at_once) {
      int here[at_once], there[at_once];
      const int count = std::min(at_once, size - first);
      std::iota(here, here + count, first);
      known = real.Group_translate_ranks(members, count, here, world, there) == MPI_SUCCESS;
      for (int i = 0; i < count && known; ++i) {
        known = there[i] >= 0 && there[i] < job.topology.ranks();
        const int node = known ? job.topology.node_of(there[i]) : first_node;
        if (first_node < 0) first_node = node;
        several |= node != first_node;
      }
    }
  }
  if (members != MPI_GROUP_NULL) real.Group_free(&members);
  if (world != MPI_GROUP_NULL) real.Group_free(&world);
  return known && several;
}

}  // namespace

void CommCollectives::agree(MPI_Comm comm, CommEntry& entry) noexcept {
  const Job* all = job();
  if (!all || state_.load(std::memory_order_acquire) == agreed) return;
  if (entry.size() < 2) return state_.store(agreed, std::memory_order_release);  // also an inter-communicator
  if (!on_several_nodes(*all, comm, entry.size())) return state_.store(agreed, std::memory_order_release);
  // This member can't; the least tags it could take; less than what it has for the cache; its hints.
  constexpr int words = 3 + hint_words;
  std::int64_t mine[words] = {0, 0, 0}, most[words] = {1, 0, 0};
  std::shared_ptr<CollectiveQueue> queue;
  const std::unique_lock lock(agreeing, std::try_to_lock);
  try {
    if (fail_here(FailPoint::queue)) throw std::bad_alloc();
    std::vector<int> world_ranks;
    for (int rank = 0; rank < entry.size(); ++rank) world_ranks.push_back(entry.world_rank(rank));
    std::optional<Topology> topology = all->topology.restricted(world_ranks);
    if (!topology || !remembered) throw std::bad_alloc();
    shape_ = shape_of(Collective::allgather, 0, true, *topology);
    queue = std::make_shared<CollectiveQueue>(std::move(*topology), entry.rank(), all->wire, std::move(world_ranks), all->settings.window_limit);
  } catch (...) {
    mine[0] = 1;
  }
  if (!lock)
    mine[0] = 1;
  else
    mine[1] = next_tags;
  mine[2] = -cache_to_give(*all);
  tell(hints, mine + 3);
  if (real.Allreduce(mine, most, words, MPI_INT64_T, MPI_MAX, comm) != MPI_SUCCESS || most[0]) return;
  settle(hints, most + 3);
  next_tags = static_cast<int>(most[1]) + 1;
  if (most[1] > (all->largest_tag - 1) / 2) {
    say_once("tags", "too many communicators for hierarchical collectives; those of newer ones are left to the MPI library");
    return state_.store(agreed, std::memory_order_release);
  }
  queue->set_tags(static_cast<int>(most[1]));
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
        if (all->chooser.choose(shape, false).hierarchical || all->chooser.choose(shape).tested) {
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

CollectiveQueue* CommCollectives::choose(Collective what, std::int64_t bytes, bool blocking, bool may_test, CollectiveChoice* choice) noexcept {
  if (state_.load(std::memory_order_acquire) != agreed || !queue_ || bytes < least_[static_cast<int>(what)][blocking] || queue_->refused()) return nullptr;
  CollectiveShape shape = shape_;
  shape.what = what;
  shape.bytes = bytes;
  shape.blocking = blocking;
  *choice = job() ? job()->chooser.choose(shape, may_test) : CollectiveChoice{};
  return choice->hierarchical ? queue_.get() : nullptr;
}

}  // namespace bestride
