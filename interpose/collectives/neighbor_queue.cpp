// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/neighbor_queue.hpp"

#include <new>
#include <utility>

#include "base/message.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/maximum.hpp"
#include "interpose/collectives/one_node.hpp"
#include "interpose/collectives/one_node_neighbors.hpp"
#include "interpose/collectives/tag_agreement.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
NeighborQueue::NeighborQueue(const Job& job, WindowMember member, const EdgesShape& shape, NeighborEdges found,
                             std::vector<int> world_ranks)
    : CollectiveQueue(job.private_comm, std::move(world_ranks)),
      shape_(shape),
      found_(std::move(found)),
      rank_(member.rank),
      window_(*job.offers, member, static_cast<std::int64_t>(shape.bytes()), job.settings.window_limit) {}

std::shared_ptr<NeighborQueue> NeighborQueue::make(MPI_Comm comm, CommEntry& entry, CallForm calls) noexcept {
  const Job* all = job();
  if (!all || !all->offers) return nullptr;
  CommCollectives& collectives = entry.collectives;
  const bool persistent = calls == CallForm::persistent;
  FoundEdges found = find_edges(comm, entry, calls, all->settings.window_limit / (persistent ? 8 : 1));
  if (!found.possible) return nullptr;
  // The members agree on the maximum of each word: whether this member can't agree; the least pair of tags that it
  // could take; rank 0's offer; bytes of its shared memory.
  std::int64_t mine[4] = {0, 0, 0, all->offers->bytes_in_use()}, most[4] = {1, 0, 0, 0};
  std::shared_ptr<NeighborQueue> queue;
  TagAgreement tags;
  try {
    if (inject_failure(FailPoint::queue) || !collectives.remembered || !tags.possible() || !found.edges)
      throw std::bad_alloc();
    if (persistent && !collectives.persistent_collectives)
      collectives.persistent_collectives = std::make_shared<char>();
    if (persistent && collectives.persistent_collectives.use_count() > CommCollectives::max_persistent)
      throw std::bad_alloc();
    std::vector<int> world_ranks;
    for (int rank = 0; rank < entry.size(); ++rank) world_ranks.push_back(entry.world_rank(rank));
    queue = std::make_shared<NeighborQueue>(*all, WindowMember{entry.size(), entry.rank()}, found.shape,
                                            std::move(*found.edges), std::move(world_ranks));
    mine[1] = tags.least();
    mine[2] = queue->window_.take_offer();
  } catch (...) {
    mine[0] = 1;
  }
  if (real.Allreduce(mine, most, 4, MPI_INT64_T, maximum(), comm) != MPI_SUCCESS || most[0]) return nullptr;
  if (!tags.take(static_cast<int>(most[1]), all->largest_tag)) return nullptr;
  if (most[2] == 0 || !queue->window_.fits(most[3])) {
    log_info_once("one_node_queues",
                  "many communicators or persistent collectives on one node; nonblocking collectives of newer ones are "
                  "left to the MPI library (BESTRIDE_WINDOW_LIMIT)");
    return nullptr;
  }
  queue->window_.set_offer(static_cast<int>(most[2]));
  queue->set_tags(static_cast<int>(most[1]));
  if (!persistent) return queue;
  queue->count_in(collectives.persistent_collectives);
  return queue->share_memory_now() ? queue : nullptr;
}

Task NeighborQueue::share_memory() {
  return window_.set_up(edges_, [this](std::byte* memory) {
    return view_of<Edges>(memory, shape_, rank_, found_.out, found_.in[0].size());
  });
}

Task NeighborQueue::make() {
  if (!failed_) co_await share_memory();
  if (edges_) co_return;
  failed_ = true;
  warn_once_per_job("window",
                    "no shared memory between the ranks of a node; their nonblocking collectives go by messages");
  messages_ = std::make_unique<EdgeMessages>(transport_, found_.out);
}

Task NeighborQueue::exchange(NeighborForm form, const Operands& input, const Operands& output) {
  const std::span<const EdgeEnd> in = found_.incoming(form);
  if (edges_) {
    edges_->begin();
    co_await until([&] { return edges_->step(in, input, output); });
    report_exchange(edges_->copies_refused(), edges_->truncated());
  } else {
    co_await messages_->exchange(in, input, output);
    report_exchange(false, messages_->truncated());
  }
}

std::shared_ptr<NeighborQueue> choose_neighbor_queue(CommEntry& entry, NeighborForm form) noexcept {
  CommCollectives& collectives = entry.collectives;
  if (!job() || !collectives.neighbor_queue || !collectives.neighbor_queue->serves(form)) return nullptr;
  if (collectives.neighbor_starts < OneNode::calls_before) {
    ++collectives.neighbor_starts;
    return nullptr;
  }
  return collectives.neighbor_queue;
}

std::shared_ptr<NeighborQueue> make_neighbor_queue(MPI_Comm comm, CommEntry& entry, NeighborForm form,
                                                   std::int64_t longest, bool gaps) noexcept {
  const Job* all = job();
  if (!all || !all->offers) return nullptr;
  before_library_collective(comm);
  const std::int64_t own[] = {longest, gaps};
  std::int64_t most[] = {0, 0};
  if (real.Allreduce(own, most, 2, MPI_INT64_T, maximum(), comm) != MPI_SUCCESS ||
      !persistent_neighbors_on_one_node(most[0], entry.collectives.shares_always, most[1] != 0))
    return nullptr;
  std::shared_ptr<NeighborQueue> made = NeighborQueue::make(comm, entry, CallForm::persistent);
  return made && made->serves(form) ? made : nullptr;
}

}  // namespace bestride::inline interpose
