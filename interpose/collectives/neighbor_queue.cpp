// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/neighbor_queue.hpp"

#include <new>
#include <utility>

#include "base/message.hpp"
#include "interpose/collectives/comm_parts.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/maximum.hpp"
#include "interpose/collectives/one_node.hpp"
#include "interpose/collectives/one_node_neighbors.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {

NeighborQueue::NeighborQueue(const Job& job, std::shared_ptr<CommMemory> memory, std::vector<int> world_ranks)
    : CollectiveQueue(job.private_comm, std::move(world_ranks)), memory_(std::move(memory)) {}

std::shared_ptr<NeighborQueue> NeighborQueue::make_persistent(MPI_Comm comm, CommEntry& entry) noexcept {
  const Job* all = job();
  if (!all || !all->nonblocking_on_node) return nullptr;
  CommCollectives& collectives = collectives_of(entry);
  constexpr CallForm calls = CallForm::persistent;
  FoundEdges found = known_edges(comm, entry, calls);
  if (!found.edges) found = find_edges(comm, entry, calls, all->settings.window_limit / 8);
  if (!found.edges) return nullptr;
  // The members agree on the maximum of each word: whether this member can't agree; rank 0's record.
  std::int64_t mine[2] = {0, 0}, most[2] = {1, 0};
  std::shared_ptr<CommMemory> memory;
  std::shared_ptr<NeighborQueue> queue;
  try {
    if (inject_failure(FailPoint::queue) || !collectives.remembered) throw std::bad_alloc();
    if (!collectives.persistent_collectives) collectives.persistent_collectives = std::make_shared<char>();
    if (collectives.persistent_collectives.use_count() > CommCollectives::max_persistent) throw std::bad_alloc();
    memory = CommMemory::make(*all, entry);
    queue = std::make_shared<NeighborQueue>(*all, memory, entry.world_ranks());
    mine[1] = memory->take_record();
  } catch (...) {
    mine[0] = 1;
  }
  if (real.Allreduce(mine, most, 2, MPI_INT64_T, maximum(), comm) != MPI_SUCCESS || most[0]) return nullptr;
  if (most[1] == 0) {
    report_no_record();
    return nullptr;
  }
  memory->set_record(static_cast<int>(most[1]));
  queue->set_edges(std::move(found));
  queue->set_tags(memory->tag_pair(*all, PartKind::nonblocking_neighbors));
  queue->count_in(collectives.persistent_collectives);
  return queue->share_memory_now() ? queue : nullptr;
}

Task NeighborQueue::share_memory() {
  part_.emplace(memory_, PartKind::nonblocking_neighbors);
  part_->ask();
  co_await until([this] {
    return part_->step(found_.shape, NewMemory::full, [this](std::byte* data, const EdgesShape& shape) {
      return view_of<Edges>(data, shape, memory_->member().rank, found_.edges->out, found_.edges->in[0].size());
    });
  });
}

Task NeighborQueue::make() {
  if (!failed_) co_await share_memory();
  if (edges()) co_return;
  failed_ = true;
  memory_->retire();
  warn_once_per_job("window",
                    "no shared memory between the ranks of a node; their nonblocking collectives go by messages");
  messages_ = std::make_unique<EdgeMessages>(transport_, found_.edges->out);
}

Task NeighborQueue::exchange(NeighborForm form, const Operands& input, const Operands& output) {
  const std::span<const EdgeEnd> in = found_.edges->incoming(form);
  if (Edges* const shared = edges()) {
    shared->begin();
    co_await until([&] { return shared->step(in, input, output); });
    report_exchange(shared->copies_refused(), shared->truncated());
  } else {
    co_await messages_->exchange(in, input, output);
    report_exchange(false, messages_->truncated());
  }
}

std::shared_ptr<NeighborQueue> choose_neighbor_queue(MPI_Comm comm, CommEntry& entry, NeighborForm form) noexcept {
  CommCollectives& collectives = collectives_of(entry);
  if (const Job* all = job(); !all || !all->nonblocking_on_node || !entry.neighbors().known) return nullptr;
  // The members know nothing else that is the same on all of them.
  const int calls_before = collectives.shares_always ? 2 : static_cast<int>(Usage::small_pays);
  if (collectives.neighbor_starts < calls_before) {
    ++collectives.neighbor_starts;
    return nullptr;
  }
  want_neighbor_queue(comm, entry);
  return collectives.neighbor_queue && collectives.neighbor_queue->serves(form) ? collectives.neighbor_queue : nullptr;
}

std::shared_ptr<NeighborQueue> make_neighbor_queue(MPI_Comm comm, CommEntry& entry, NeighborForm form,
                                                   std::optional<std::int64_t> longest, bool gaps) noexcept {
  const Job* all = job();
  if (!all || !all->nonblocking_on_node || !(collectives_of(entry).shares_always || all->settings.one_node.requests))
    return nullptr;
  before_library_collective(comm);
  const std::int64_t own[] = {longest.value_or(0), gaps, !longest};
  std::int64_t most[] = {0, 0, 1};
  if (real.Allreduce(own, most, 3, MPI_INT64_T, maximum(), comm) != MPI_SUCCESS || most[2] != 0 ||
      !persistent_neighbors_on_one_node(most[0], collectives_of(entry).shares_always, most[1] != 0))
    return nullptr;
  std::shared_ptr<NeighborQueue> made = NeighborQueue::make_persistent(comm, entry);
  return made && made->serves(form) ? made : nullptr;
}

}  // namespace bestride::inline interpose
