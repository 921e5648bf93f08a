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
#include "interpose/collectives/comm_memory.hpp"
#include "interpose/collectives/comm_parts.hpp"
#include "interpose/collectives/hierarchical_queue.hpp"
#include "interpose/collectives/info_hints.hpp"
#include "interpose/collectives/maximum.hpp"
#include "interpose/collectives/member.hpp"
#include "interpose/collectives/neighbor_edges.hpp"
#include "interpose/collectives/one_node.hpp"
#include "interpose/collectives/one_node_queue.hpp"
#include "interpose/collectives/tag_agreement.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/comm_registry.hpp"
#include "interpose/objects/runtime.hpp"

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

/// True if shared memory is used at every size.
bool shares_always(const Job& all) noexcept {
  return all.crowded || all.settings.parameters.mode == CollectiveMode::hierarchical;
}

/// A record that this rank has taken, -1: none.
NodeRecord own_record(int index) noexcept {
  NodeRecord own;
  own.index = index;
  if (index >= 0)
    own.put_back = [](const NodeRecord& record) noexcept {
      const Job* all = job();
      if (!all) return;
      if (!record.written) return all->node_memory->put_back_unused(record.index);
      all->node_memory->at(record.index).departed.fetch_add(1, std::memory_order_release);
      all->node_memory->put_back(record.index, record.ranks);
    };
  return own;
}
/// What another member does with a record that it does not look at any more.
void depart_from(const NodeRecord& record) noexcept {
  if (const Job* all = job(); all && record.written)
    all->node_memory->at(record.index).departed.fetch_add(1, std::memory_order_release);
}

/// The rank in MPI_COMM_WORLD of a new communicator's rank 0. Unlike CommEntry::world_rank() it does not ask for the
/// others, which few communicators need.
int leading_world_rank(const Job& all, MPI_Comm comm, CommEntry& entry) noexcept {
  MPI_Group members = MPI_GROUP_NULL;
  int first = 0, there = MPI_UNDEFINED;
  if (all.world_group != MPI_GROUP_NULL && real.Comm_group(comm, &members) == MPI_SUCCESS) {
    if (real.Group_translate_ranks(members, 1, &first, all.world_group, &there) != MPI_SUCCESS) there = MPI_UNDEFINED;
    real.Group_free(&members);
  }
  return there == MPI_UNDEFINED ? entry.world_rank(0) : there;
}

/// `none` is permanent. `failed`: some member could not agree, perhaps only this time.
enum class Agreement { reached, none, failed };

/// What this member has for its collectives. `bytes`: of a persistent collective, as in CollectiveShape. Throws
/// std::bad_alloc if the member can't have it.
struct OwnQueue {
  std::shared_ptr<HierarchicalQueue> between_nodes;
  NodeRecord record;                   ///< on one node, for all collectives: of rank 0
  std::shared_ptr<CommMemory> memory;  ///< on one node, for a persistent collective
  std::shared_ptr<OneNodeQueue> on_one_node;

  OwnQueue() = default;
  OwnQueue(const Job& all, CommEntry& entry, bool one_node, std::optional<std::int64_t> bytes) {
    const std::int64_t window_limit = all.settings.window_limit / (bytes ? 8 : 1);
    if (one_node && !bytes) {
      if (entry.rank() == 0) record = own_record(all.node_memory->take());
    } else if (one_node) {
      constexpr std::int64_t page = 4096;
      const int ranks = entry.size();
      const std::int64_t needed = std::min(*bytes, window_limit) + page;
      const RoundsShape shape = RoundsShape::within(ranks, std::min(window_limit, needed * RoundsShape::slots * ranks));
      memory = CommMemory::make(all, entry);
      if (all.nonblocking_on_node)
        on_one_node =
            std::make_shared<OneNodeQueue>(memory, shape, shares_always(all), all.private_comm, entry.world_ranks());
    } else {
      std::vector<int> world_ranks = entry.world_ranks();
      std::optional<Topology> topology = all.topology.restricted(world_ranks);
      if (!topology) throw std::bad_alloc();
      const std::int64_t most = HierarchicalQueue::max_slot_bytes;
      between_nodes = std::make_shared<HierarchicalQueue>(std::move(*topology), entry.rank(), all.private_comm,
                                                          std::move(world_ranks), window_limit,
                                                          std::min(bytes.value_or(most), most) * entry.size());
    }
  }
};

/// The members of a communicator on one node know its record; `record.index` < 0: there is none.
void set_on_one_node(const Job& all, CommEntry& entry, int leader, NodeRecord&& record) noexcept {
  if (record.index < 0) return report_no_record();
  CommCollectives& collectives = collectives_of(entry);
  record.ranks = entry.size();
  if (!record.put_back) record.put_back = &depart_from;
  collectives.record = std::move(record);
  collectives.leader = leader;
  collectives.on_one_node = true;
  collectives.shares_always = shares_always(all);
  collectives.known_grids = known_grid_count();
}

/// `one_node`: all members are on one node. `persistent_bytes`: if the queue is for one persistent collective, the size
/// of this collective (as in CollectiveShape). If all collectives are on one node, they have no queue so far.
std::shared_ptr<CollectiveQueue> agree_on_queue(const Job& all, MPI_Comm comm, CommEntry& entry, bool one_node,
                                                std::optional<std::int64_t> persistent_bytes,
                                                Agreement* agreement) noexcept {
  CommCollectives& collectives = collectives_of(entry);
  *agreement = Agreement::failed;
  // The members agree on the maximum of each word: whether this member can't agree; the least pair of tags that it
  // could take; the negated limit of its memory for the cache (so the smallest limit counts); rank 0's record; its
  // hints.
  constexpr int words = 4 + hint_words;
  std::int64_t mine[words] = {0, 0, 0, 0}, most[words] = {1, 0, 0, 0};
  OwnQueue own;
  std::optional<TagAgreement> tags;
  if (!one_node) tags.emplace();
  try {
    if (inject_failure(FailPoint::queue)) throw std::bad_alloc();
    if (persistent_bytes && !collectives.persistent_collectives)
      collectives.persistent_collectives = std::make_shared<char>();
    if (!collectives.remembered ||
        (persistent_bytes && collectives.persistent_collectives.use_count() > CommCollectives::max_persistent))
      throw std::bad_alloc();
    own = OwnQueue(all, entry, one_node, persistent_bytes);
    mine[3] = own.memory ? own.memory->take_record() : own.record.index + 1;
  } catch (...) {
    mine[0] = 1;
  }
  if (tags && !tags->possible())
    mine[0] = 1;
  else if (tags)
    mine[1] = tags->least();
  mine[2] = -CacheShare::next(all);
  write_words(collectives.hints, mine + 4);
  if (real.Allreduce(mine, most, words, MPI_INT64_T, maximum(), comm) != MPI_SUCCESS || most[0]) return nullptr;
  apply_agreed(collectives.hints, most + 4);
  *agreement = Agreement::none;
  if (tags && !tags->take(static_cast<int>(most[1]), all.largest_tag)) return nullptr;
  std::shared_ptr<CollectiveQueue> queue;
  if (one_node && !persistent_bytes) {
    own.record.index = static_cast<int>(most[3]) - 1;
    set_on_one_node(all, entry, all.topology.local_rank_of(entry.world_rank(0)), std::move(own.record));
  } else if (one_node) {
    if (most[3] == 0) {
      report_no_record();
      return nullptr;
    }
    own.memory->set_record(static_cast<int>(most[3]));
    if (own.on_one_node) own.on_one_node->set_tags(own.memory->tag_pair(all, PartKind::nonblocking));
    queue = std::move(own.on_one_node);
  } else {
    // Arenas have the same size on all nodes, so the budget is that of the node with the fewest ranks.
    const Topology& topology = own.between_nodes->topology();
    const int givers = topology.min_ranks_per_node();
    const CacheLimits cache = cache_limits(all.settings.parameters.job_link, -most[2] * givers, topology.nodes());
    own.between_nodes->set_cache(cache, CacheShare((cache.budget + givers - 1) / givers));
    if (!persistent_bytes) collectives.shape = shape_of(Collective::allgather, 0, true, topology);
    own.between_nodes->set_tags(static_cast<int>(most[1]));
    queue = std::move(own.between_nodes);
  }
  *agreement = Agreement::reached;
  return queue;
}

/// The sizes of a collective that may go through the hierarchy.
OneNodeBounds sizes_between_nodes(const CollectiveChooser& chooser, CollectiveShape shape) noexcept {
  for (shape.bytes = 1; shape.bytes <= std::int64_t{1} << 40; shape.bytes *= 2)
    if (chooser.choose(shape).hierarchical || chooser.choose(shape, false).hierarchical)
      return {shape.bytes / 2 + 1, OneNodeBounds::unbounded};
  return {};
}

void set_sizes(const Job& all, CommEntry& entry) noexcept {
  CommCollectives& collectives = collectives_of(entry);
  const OneNodeLimits& limits = all.settings.one_node;
  const FloatEnvironment floats;
  for (int what = 0; what < collective_count; ++what) {
    auto& sizes = collectives.sizes[static_cast<std::size_t>(what)];
    OneNodeBounds &blocking = sizes[static_cast<std::size_t>(CallForm::blocking)],
                  &nonblocking = sizes[static_cast<std::size_t>(CallForm::nonblocking)],
                  &persistent = sizes[static_cast<std::size_t>(CallForm::persistent)];
    blocking = nonblocking = persistent = {};
    if (collectives.on_one_node) {
      const auto taken = [&](bool waits) {
        return sizes_on_one_node(static_cast<Collective>(what), waits, entry.size(), collectives.shares_always, limits);
      };
      blocking = taken(true);
      if (!all.nonblocking_on_node) continue;
      nonblocking = taken(false);
      if (collectives.shares_always || limits.requests) persistent = {1, OneNodeBounds::unbounded};
    } else if (collectives.queue) {
      CollectiveShape shape = collectives.shape;
      shape.what = static_cast<Collective>(what);
      shape.blocking = true;
      blocking = sizes_between_nodes(all.chooser, shape);
      shape.blocking = false;
      nonblocking = persistent = sizes_between_nodes(all.chooser, shape);
    }
  }
}

/// Creations in which this thread is: a tool may call one function of the library in another one.
thread_local constinit int creating __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace

ChildAgreement::ChildAgreement(MPI_Comm parent, ChildRanks ranks) noexcept
    : outermost_(creating++ == 0), ranks_(ranks) {
  const Job* all = job();
  if (!outermost_ || !all || !all->node_memory) return;
  CommEntry* const entry = runtime().comms.find(parent);
  if (!entry || !may_share_memory(*entry)) return;
  make_wanted_neighbor_queue(parent, *entry);
  parent_ = entry;
  CommCollectives& of_parent = collectives_of(*entry);
  number_ = ++of_parent.children;
  of_parent.record.written = true;
  NodeMemory& memory = *all->node_memory;
  const int record = of_parent.record.index;
  if (!inject_failure(FailPoint::queue)) entry_ = runtime().comms.reserve();
  if (!entry_) memory.at(record).without_memory[number_ % 2].store(number_, std::memory_order_release);
  if (ranks != ChildRanks::any && entry->rank() != 0) return;
  record_ = memory.take();
  memory.announcement(record, memory.local_rank(), number_)
      .store(std::uint64_t{number_} << 32 | static_cast<std::uint32_t>(record_ + 1), std::memory_order_release);
}

ChildAgreement::~ChildAgreement() {
  --creating;
  const Job* all = job();
  if (parent_ && !counted_) --collectives_of(*parent_).children;
  if (record_ >= 0 && all) all->node_memory->put_back_unused(record_);
  if (entry_) runtime().comms.give_back(entry_);
}

CommEntry* ChildAgreement::made(MPI_Comm comm) noexcept {
  if (!outermost_) return nullptr;
  CommRegistry& known = runtime().comms;
  const Job* all = job();
  if (!all || !parent_ || !entry_) {
    known.made(comm);
    if (all && !parent_) const CommMember member(comm, true);
    return known.find(comm);
  }
  CommEntry* const entry = known.made(comm, std::exchange(entry_, nullptr), *parent_, ranks_);
  NodeMemory& memory = *all->node_memory;
  const CommCollectives& of_parent = collectives_of(*parent_);
  if (memory.at(of_parent.record.index).without_memory[number_ % 2].load(std::memory_order_acquire) == number_)
    return entry;
  if (!entry) {
    warn_once("child", "no memory for a new communicator: other ranks may wait for this one in its collectives");
    return nullptr;
  }
  if (entry->size() < 2) return entry;
  NodeRecord record;
  int leader = of_parent.leader;
  if (entry->rank() == 0) {
    leader = memory.local_rank();
    record = own_record(std::exchange(record_, -1));
  } else {
    if (ranks_ == ChildRanks::any) leader = all->topology.local_rank_of(leading_world_rank(*all, comm, *entry));
    const Announcement& announced = memory.announcement(of_parent.record.index, leader, number_);
    std::uint64_t word = 0;
    wait_for_members([&] { return (word = announced.load(std::memory_order_acquire)) >> 32 == number_; });
    record.index = static_cast<int>(word & 0xffffffff) - 1;
  }
  set_on_one_node(*all, *entry, leader, std::move(record));
  CommCollectives& collectives = collectives_of(*entry);
  collectives.elder = of_parent.elder + number_;
  if (entry->size() == parent_->size() && collectives.on_one_node)
    collectives.sizes = of_parent.sizes;
  else
    set_sizes(*all, *entry);
  collectives.agreed.store(true, std::memory_order_release);
  return entry;
}

void agree_on_collectives(MPI_Comm comm, CommEntry& entry) noexcept {
  CommCollectives& collectives = collectives_of(entry);
  const Job* all = job();
  if (!all || collectives.agreed.load(std::memory_order_acquire)) return;
  // `outside` also for an inter-communicator.
  const MemberLocation members = entry.size() < 2 ? MemberLocation::outside : locate_members(*all, comm, entry.size());
  const bool on_one_node = members == MemberLocation::on_one_node && entry.size() <= RoundsShape::max_ranks;
  if (members == MemberLocation::on_several_nodes || (on_one_node && all->node_memory)) {
    Agreement agreement;
    std::shared_ptr<CollectiveQueue> queue = agree_on_queue(*all, comm, entry, on_one_node, std::nullopt, &agreement);
    if (agreement == Agreement::failed) return;
    collectives.queue = std::move(queue);
  }
  set_sizes(*all, entry);
  collectives.agreed.store(true, std::memory_order_release);
}

std::shared_ptr<CollectiveQueue> make_persistent_queue(MPI_Comm comm, CommEntry& entry, std::int64_t bytes) noexcept {
  const Job* all = job();
  if (!all) return nullptr;
  Agreement agreement;
  std::shared_ptr<CollectiveQueue> queue =
      agree_on_queue(*all, comm, entry, collectives_of(entry).on_one_node, bytes, &agreement);
  if (!queue) return nullptr;
  queue->count_in(collectives_of(entry).persistent_collectives);
  return collectives_of(entry).on_one_node && !queue->share_memory_now() ? nullptr : queue;
}

CollectiveQueue* choose_queue(const CommCollectives& collectives, Collective what, std::int64_t bytes, bool blocking,
                              bool exact, CollectiveChoice* choice) noexcept {
  if (!collectives.agreed.load(std::memory_order_acquire) || !collectives.queue) return nullptr;
  if (collectives.leaves(what, blocking ? CallForm::blocking : CallForm::nonblocking, bytes) ||
      collectives.queue->failed())
    return nullptr;
  const FloatEnvironment floats;
  CollectiveShape shape = collectives.shape;
  shape.what = what;
  shape.bytes = bytes;
  shape.blocking = blocking;
  *choice = job() ? job()->chooser.choose(shape, exact) : CollectiveChoice{};
  return choice->hierarchical ? collectives.queue.get() : nullptr;
}

}  // namespace bestride::inline interpose
