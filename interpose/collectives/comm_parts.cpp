// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/comm_parts.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/message.hpp"
#include "interpose/collectives/comm_memory.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/neighbor_queue.hpp"
#include "interpose/collectives/one_node.hpp"
#include "interpose/collectives/one_node_neighbors.hpp"
#include "interpose/collectives/one_node_queue.hpp"
#include "interpose/collectives/pending.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

/// Blocking calls that are left to the MPI library first. To make a OneNode and to ask for its memory takes as long as
/// one or two of them.
constexpr int calls_before = 3;
/// The same of neighbor collectives, whose edges have to be known, too.
constexpr int neighbor_calls_before = 15;

/// Communicators that were created before the first one whose edges are not looked for when it is created.
constexpr std::uint32_t few_communicators = 16;

bool shares_neighbors(const CommEntry& entry) noexcept {
  return collectives_of(entry).shares_always || job()->settings.one_node.neighbors;
}

/// May throw std::bad_alloc.
const std::shared_ptr<CommMemory>& memory_of(const Job& all, CommEntry& entry) {
  CommCollectives& collectives = collectives_of(entry);
  if (!collectives.memory) {
    collectives.memory = CommMemory::make(all, entry);
    collectives.memory->set_record(collectives.record.index + 1);
    collectives.record.put_back = nullptr;  // the memory does it
  }
  return collectives.memory;
}

RoundsShape full_shape(const Job& all, int ranks) noexcept {
  return RoundsShape::within(ranks, all.settings.window_limit);
}

void report_no_part() noexcept {
  warn_once("part", "no memory for the collectives of a communicator: other ranks may wait for this one");
}

/// make() may throw. False: no memory.
template <class Make>
bool try_to(Make make) noexcept {
  try {
    make();
    return true;
  } catch (...) {
    report_no_part();
    return false;
  }
}

void make_queue_on(const Job& all, CommEntry& entry, FoundEdges found) noexcept {
  try_to([&] {
    const std::shared_ptr<CommMemory>& memory = memory_of(all, entry);
    auto made = std::make_shared<NeighborQueue>(all, memory, entry.world_ranks());
    made->set_edges(std::move(found));
    made->set_tags(memory->tag_pair(all, PartKind::nonblocking_neighbors));
    collectives_of(entry).neighbor_queue = std::move(made);
  });
}

/// Looks for the edges, which may wait, unless they are known.
void make_neighbor_queue_now(MPI_Comm comm, CommEntry& entry) noexcept {
  CommCollectives& collectives = collectives_of(entry);
  const Job* all = job();
  if (!all || collectives.edges_sought) return;
  collectives.edges_sought = true;
  collectives.edges_wanted = false;
  FoundEdges found = known_edges(comm, entry, CallForm::nonblocking);
  if (!found.edges) found = find_edges(comm, entry, CallForm::nonblocking, all->settings.window_limit);
  if (found.edges) make_queue_on(*all, entry, std::move(found));
}

}  // namespace

OneNode* one_node_of_call(CommEntry& entry) noexcept {
  CommCollectives& collectives = collectives_of(entry);
  if (OneNode* const known = collectives.one_node.get()) return known;
  const Job* all = job();
  if (!all || !may_share_memory(entry) || std::exchange(collectives.call_begun, true)) return nullptr;
  if (++collectives.blocking_calls <= calls_before && !collectives.shares_always) return nullptr;
  try_to([&] {
    auto made =
        std::make_shared<OneNode>(memory_of(*all, entry), full_shape(*all, entry.size()), collectives.shares_always);
    made->begin();
    collectives.one_node = std::move(made);
  });
  return collectives.one_node.get();
}

CommEntry* leaving_neighbor_call(MPI_Comm comm) noexcept {
  CommEntry* const entry = job() ? runtime().comms.find(comm) : nullptr;
  if (!entry || entry->size() < 2 || !may_share_memory(*entry)) return nullptr;
  const CommCollectives& collectives = collectives_of(*entry);
  if (collectives.shares_always || collectives.edges_wanted) return nullptr;
  const OneNodeNeighbors* const made = collectives.one_node_neighbors.get();
  return (made ? made->leaves_next() : collectives.neighbor_calls < neighbor_calls_before) ? entry : nullptr;
}

void count_left_neighbor_call(CommEntry& entry, std::int64_t bytes) noexcept {
  CommCollectives& collectives = collectives_of(entry);
  if (OneNodeNeighbors* const made = collectives.one_node_neighbors.get())
    made->count_left(bytes);
  else
    ++collectives.neighbor_calls;
}

OneNodeNeighbors* neighbors_of_call(CommEntry& entry) noexcept {
  CommCollectives& collectives = collectives_of(entry);
  if (OneNodeNeighbors* const known = collectives.one_node_neighbors.get()) return known;
  const Job* all = job();
  if (!all || !may_share_memory(entry) || !entry.neighbors().known || !shares_neighbors(entry)) return nullptr;
  if (++collectives.neighbor_calls <= neighbor_calls_before && !collectives.shares_always) return nullptr;
  try_to([&] {
    collectives.one_node_neighbors = std::make_shared<OneNodeNeighbors>(
        memory_of(*all, entry), collectives.shares_always, collectives.neighbor_calls - 1);
  });
  return collectives.one_node_neighbors.get();
}

bool make_one_node_queue(CommEntry& entry) noexcept {
  CommCollectives& collectives = collectives_of(entry);
  const Job* all = job();
  if (!all || collectives.queue) return collectives.queue != nullptr;
  return try_to([&] {
    const std::shared_ptr<CommMemory>& memory = memory_of(*all, entry);
    auto made = std::make_shared<OneNodeQueue>(memory, full_shape(*all, entry.size()), collectives.shares_always,
                                               all->private_comm, entry.world_ranks());
    made->set_tags(memory->tag_pair(*all, PartKind::nonblocking));
    collectives.queue = std::move(made);
  });
}

void want_neighbor_queue(MPI_Comm comm, CommEntry& entry) noexcept {
  CommCollectives& collectives = collectives_of(entry);
  const Job* all = job();
  if (!all || collectives.neighbor_queue || collectives.edges_sought || collectives.edges_wanted ||
      !(collectives.shares_always || all->settings.one_node.requests))
    return;
  FoundEdges found = known_edges(comm, entry, CallForm::nonblocking, collectives.known_grids);
  collectives.edges_sought = found.edges != nullptr;
  collectives.edges_wanted = !collectives.edges_sought;
  if (found.edges) make_queue_on(*all, entry, std::move(found));
}

void make_wanted_neighbor_queue(MPI_Comm comm, CommEntry& entry) noexcept {
  if (!collectives_of(entry).edges_wanted) return;
  before_library_collective(comm);
  make_neighbor_queue_now(comm, entry);
}

void make_early_neighbor_queue(MPI_Comm comm, CommEntry& entry) noexcept {
  const Job* all = job();
  if (all && all->nonblocking_on_node && may_share_memory(entry) &&
      (collectives_of(entry).shares_always || all->settings.one_node.requests) &&
      (collectives_of(entry).shares_always || collectives_of(entry).elder < few_communicators))
    make_neighbor_queue_now(comm, entry);
}

}  // namespace bestride::inline interpose
