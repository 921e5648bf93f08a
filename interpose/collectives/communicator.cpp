// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/communicator.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <vector>

#include "base/float_environment.hpp"
#include "base/message.hpp"
#include "collectives/one_node/rounds.hpp"
#include "interpose/collectives/cache_share.hpp"
#include "interpose/collectives/hierarchical_queue.hpp"
#include "interpose/collectives/info_hints.hpp"
#include "interpose/collectives/maximum.hpp"
#include "interpose/collectives/neighbor_queue.hpp"
#include "interpose/collectives/one_node_queue.hpp"
#include "interpose/collectives/tag_agreement.hpp"
#include "interpose/collectives/window_offers.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/comm_registry.hpp"

namespace bestride::inline interpose {
namespace {

/// Caching the results of allgathers pays off if the network is slower than memory. Deltas are computed for each other
/// node and pay off only if the network is slower still.
CacheLimits cache_limits(const LinkCosts& link, std::int64_t budget, int nodes) noexcept {
  CacheLimits limits;
  if (link.wire_byte_s < 2 * link.copy_byte_s || budget < 2 * limits.min_bytes) return limits;
  limits.budget = budget / 4096 * 4096;
  limits.delta = link.wire_byte_s > nodes * link.copy_byte_s;
  return limits;
}

/// Where the members of a communicator are.
enum class MemberLocation { outside, on_one_node, on_several_nodes };

/// `outside`: a member is not in MPI_COMM_WORLD. Allocates nothing, because it must not fail on one member only: that
/// member would wait for others that do not agree, or they would wait for it.
MemberLocation locate_members(const Job& job, MPI_Comm comm, int size) noexcept {
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
  return !known ? MemberLocation::outside : several ? MemberLocation::on_several_nodes : MemberLocation::on_one_node;
}

/// `none` is permanent. `failed`: some member could not agree, perhaps only this time.
enum class Agreement { reached, none, failed };

/// What this member has for a queue. `bytes`: of a persistent collective, as in CollectiveShape. Throws std::bad_alloc
/// if the member can't have it.
struct OwnQueue {
  std::shared_ptr<HierarchicalQueue> between_nodes;
  std::shared_ptr<OneNodeQueue> on_one_node;
  std::int64_t offer = 0;  ///< of OfferedWindow::take_offer()

  OwnQueue() = default;
  OwnQueue(const Job& all, CommEntry& entry, std::optional<std::int64_t> bytes) {
    const int ranks = entry.size();
    std::vector<int> world_ranks;
    for (int rank = 0; rank < ranks; ++rank) world_ranks.push_back(entry.world_rank(rank));
    std::optional<Topology> topology = all.topology.restricted(world_ranks);
    if (!topology) throw std::bad_alloc();
    const std::int64_t window_limit = all.settings.window_limit / (bytes ? 8 : 1);
    if (topology->nodes() == 1) {
      constexpr std::int64_t page = 4096;
      const std::int64_t needed = bytes ? std::min(*bytes, window_limit) + page : window_limit;
      const RoundsShape shape = RoundsShape::within(ranks, std::min(window_limit, needed * RoundsShape::slots * ranks));
      on_one_node = std::make_shared<OneNodeQueue>(WindowMember{ranks, entry.rank()}, shape, all.settings.window_limit,
                                                   all.private_comm, std::move(world_ranks), *all.offers);
      offer = on_one_node->window().take_offer();
    } else {
      const std::int64_t most = HierarchicalQueue::max_slot_bytes;
      between_nodes = std::make_shared<HierarchicalQueue>(std::move(*topology), entry.rank(), all.private_comm,
                                                          std::move(world_ranks), window_limit,
                                                          std::min(bytes.value_or(most), most) * ranks);
    }
  }
};

/// `persistent_bytes`: if the queue is for one persistent collective, the size of this collective (as in
/// CollectiveShape).
std::shared_ptr<CollectiveQueue> agree_on_queue(const Job& all, MPI_Comm comm, CommEntry& entry,
                                                std::optional<std::int64_t> persistent_bytes,
                                                Agreement* agreement) noexcept {
  CommCollectives& collectives = entry.collectives;
  *agreement = Agreement::failed;
  // The members agree on the maximum of each word: whether this member can't agree; the least pair of tags that it
  // could take; the negated limit of its memory for the cache (so the smallest limit counts); rank 0's offer; bytes of
  // its shared memory; its hints.
  constexpr int words = 5 + hint_words;
  std::int64_t mine[words] = {0, 0, 0, 0, 0}, most[words] = {1, 0, 0, 0, 0};
  OwnQueue own;
  TagAgreement tags;
  try {
    if (inject_failure(FailPoint::queue)) throw std::bad_alloc();
    if (persistent_bytes && !collectives.persistent_collectives)
      collectives.persistent_collectives = std::make_shared<char>();
    if (!collectives.remembered ||
        (persistent_bytes && collectives.persistent_collectives.use_count() > CommCollectives::max_persistent))
      throw std::bad_alloc();
    own = OwnQueue(all, entry, persistent_bytes);
  } catch (...) {
    mine[0] = 1;
  }
  if (tags.possible())
    mine[1] = tags.least();
  else
    mine[0] = 1;
  mine[2] = -CacheShare::next(all);
  mine[3] = own.offer;
  mine[4] = all.offers ? all.offers->bytes_in_use() : 0;
  write_words(collectives.hints, mine + 5);
  if (real.Allreduce(mine, most, words, MPI_INT64_T, maximum(), comm) != MPI_SUCCESS || most[0]) return nullptr;
  apply_agreed(collectives.hints, most + 5);
  *agreement = Agreement::none;
  if (!tags.take(static_cast<int>(most[1]), all.largest_tag)) return nullptr;
  std::shared_ptr<CollectiveQueue> queue;
  if (own.on_one_node) {
    if (most[3] == 0 || !own.on_one_node->window().fits(most[4])) {
      log_info_once("one_node_queues",
                    "many communicators or persistent collectives on one node; nonblocking collectives of newer ones "
                    "are left to the MPI library (BESTRIDE_WINDOW_LIMIT)");
      return nullptr;
    }
    own.on_one_node->window().set_offer(static_cast<int>(most[3]));
    queue = std::move(own.on_one_node);
  } else {
    // Arenas have the same size on all nodes, so the budget is that of the node with the fewest ranks.
    const Topology& topology = own.between_nodes->topology();
    const int givers = topology.min_ranks_per_node();
    const CacheLimits cache = cache_limits(all.settings.parameters.job_link, -most[2] * givers, topology.nodes());
    own.between_nodes->set_cache(cache, CacheShare((cache.budget + givers - 1) / givers));
    if (!persistent_bytes) collectives.shape = shape_of(Collective::allgather, 0, true, topology);
    queue = std::move(own.between_nodes);
  }
  queue->set_tags(static_cast<int>(most[1]));
  *agreement = Agreement::reached;
  return queue;
}

/// The least size from which on a collective may go through the hierarchy.
std::int64_t least_hierarchical(const CollectiveChooser& chooser, CollectiveShape shape) noexcept {
  for (shape.bytes = 1; shape.bytes <= std::int64_t{1} << 40; shape.bytes *= 2)
    if (const CollectiveChoice exact = chooser.choose(shape);
        exact.hierarchical || exact.tested || chooser.choose(shape, false).hierarchical)
      return shape.bytes / 2 + 1;
  return std::numeric_limits<std::int64_t>::max();
}

void set_least_bytes(const Job& all, CommEntry& entry) noexcept {
  CommCollectives& collectives = entry.collectives;
  const FloatEnvironment floats;
  for (int what = 0; what < collective_count; ++what)
    for (const bool blocking : {false, true}) {
      std::int64_t& least = collectives.least_bytes[what][blocking];
      least = std::numeric_limits<std::int64_t>::max();
      if (collectives.on_one_node) {
        if (blocking || collectives.queue)
          least = least_on_one_node(static_cast<Collective>(what), blocking, entry.size(), collectives.shares_always);
      } else if (collectives.queue) {
        CollectiveShape shape = collectives.shape;
        shape.what = static_cast<Collective>(what);
        shape.blocking = blocking;
        least = least_hierarchical(all.chooser, shape);
      }
    }
}

}  // namespace

void agree_on_collectives(MPI_Comm comm, CommEntry& entry) noexcept {
  CommCollectives& collectives = entry.collectives;
  const Job* all = job();
  if (!all || collectives.agreed.load(std::memory_order_acquire)) return;
  // `outside` also for an inter-communicator.
  const MemberLocation members = entry.size() < 2 ? MemberLocation::outside : locate_members(*all, comm, entry.size());
  const bool on_one_node = members == MemberLocation::on_one_node && entry.size() <= RoundsShape::max_ranks;
  if (members == MemberLocation::on_several_nodes || (on_one_node && all->offers)) {
    Agreement agreement;
    std::shared_ptr<CollectiveQueue> queue = agree_on_queue(*all, comm, entry, std::nullopt, &agreement);
    if (agreement == Agreement::failed) return;
    if (agreement == Agreement::reached) collectives.queue = std::move(queue);
    int topology = MPI_UNDEFINED;
    if (on_one_node && real.Topo_test(comm, &topology) == MPI_SUCCESS && topology != MPI_UNDEFINED)
      collectives.neighbor_queue = NeighborQueue::make(comm, entry, CallForm::nonblocking);
  } else if (on_one_node) {
    // A member without an entry can't count calls, so it would not know in which call the shared memory is created.
    const std::int64_t forgotten = !collectives.remembered;
    std::int64_t any = 1;
    if (real.Allreduce(&forgotten, &any, 1, MPI_INT64_T, maximum(), comm) != MPI_SUCCESS || any) return;
  }
  if (on_one_node) {
    collectives.on_one_node = true;
    collectives.shares_always = all->crowded || all->settings.parameters.mode == CollectiveMode::hierarchical;
  }
  set_least_bytes(*all, entry);
  collectives.agreed.store(true, std::memory_order_release);
}

std::shared_ptr<CollectiveQueue> make_persistent_queue(MPI_Comm comm, CommEntry& entry, std::int64_t bytes) noexcept {
  const Job* all = job();
  if (!all) return nullptr;
  Agreement agreement;
  std::shared_ptr<CollectiveQueue> queue = agree_on_queue(*all, comm, entry, bytes, &agreement);
  if (!queue) return nullptr;
  queue->count_in(entry.collectives.persistent_collectives);
  return entry.collectives.on_one_node && !queue->share_memory_now() ? nullptr : queue;
}

CollectiveQueue* choose_queue(const CommCollectives& collectives, Collective what, std::int64_t bytes, bool blocking,
                              bool exact, CollectiveChoice* choice) noexcept {
  if (!collectives.agreed.load(std::memory_order_acquire) || !collectives.queue) return nullptr;
  if (collectives.leaves(what, blocking, bytes) || collectives.queue->failed()) return nullptr;
  const FloatEnvironment floats;
  CollectiveShape shape = collectives.shape;
  shape.what = what;
  shape.bytes = bytes;
  shape.blocking = blocking;
  *choice = job() ? job()->chooser.choose(shape, exact) : CollectiveChoice{};
  return choice->hierarchical ? collectives.queue.get() : nullptr;
}

}  // namespace bestride::inline interpose
