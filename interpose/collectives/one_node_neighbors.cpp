// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/one_node_neighbors.hpp"

#include <utility>

#include "base/message.hpp"
#include "interpose/collectives/comm_parts.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/one_node.hpp"
#include "interpose/collectives/one_node_wait.hpp"
#include "interpose/collectives/pending.hpp"

namespace bestride::inline interpose {

void OneNodeNeighbors::decide(MPI_Comm comm, CommEntry& entry, std::int64_t bytes) noexcept {
  const Job* all = job();
  if (!all || !asking_.due(bytes)) return;
  const WindowMember member = memory_->member();
  found_ = known_edges(comm, entry, CallForm::blocking);
  // Rank 0 decides. The edges are found by messages, so an answer comes first.
  std::atomic<int>& decision = memory_->record().decision;
  ++question_;
  bool yes = false;
  if (member.rank == 0) {
    NodeMemory& node = memory_->node();
    // To look for edges takes as long as 20 calls of the MPI library, but those of a grid are remembered.
    yes = asking_.wanted() != NewMemory::none ||
          (found_.edges ? node.has_used(static_cast<std::int64_t>(found_.shape.bytes())) || node.pay(Usage::full_pays)
                        : remembers_edges(comm) && node.pay(Usage::full_pays));
    decision.store(2 * question_ + yes, std::memory_order_release);
  } else {
    int answer = 0;
    wait_for_members([&] { return (answer = decision.load(std::memory_order_acquire)) >= 2 * question_; });
    yes = answer == 2 * question_ + 1;
  }
  if (!yes) return;
  decided_ = true;
  if (!found_.edges) {
    before_library_collective(comm);
    found_ = find_edges(comm, entry, CallForm::blocking, all->settings.window_limit);
  }
  if (!found_.edges) return;
  part_.emplace(memory_, PartKind::neighbors);
  part_->ask();
  wait_for_members([&] {
    return part_->step(found_.shape, NewMemory::full, [&](std::byte* data, const EdgesShape& shape) {
      return view_of<Edges>(data, shape, member.rank, found_.edges->out, found_.edges->in[0].size());
    });
  });
  if (!part_->view()) report_no_memory();
}

void OneNodeNeighbors::exchange(NeighborForm form, const Operands& input, const Operands& output) noexcept {
  const std::span<const EdgeEnd> in = found_.edges->incoming(form);
  Edges& edges = *part_->view();
  edges.begin();
  wait_on_one_node(edges, [&] { return edges.step(in, input, output); });
  if (window_count.load(std::memory_order_relaxed) > 0) let_others_progress();
  report_exchange(edges.copies_refused(), edges.truncated());
}

void report_exchange(bool copies_refused, bool truncated) noexcept {
  if (copies_refused)
    log_info_once("copies",
                  "the kernel forbids copies from other ranks' memory (process_vm_readv); neighbor collectives of "
                  "long messages copy twice");
  if (truncated)  // no error (quirks::neighbor_truncation_is_no_error)
    warn_once("truncated",
              "a neighbor collective has received a message that is longer than its block; its end is lost (the "
              "counts of source and destination differ)");
}

OneNodeNeighbors* choose_one_node_neighbors(MPI_Comm comm, CommEntry& entry, NeighborForm form,
                                            std::int64_t bytes) noexcept {
  if (!job() || !may_share_memory(entry)) return nullptr;
  OneNodeNeighbors* const made = neighbors_of_call(entry);
  return made && made->serves(comm, entry, form, bytes) ? made : nullptr;
}

}  // namespace bestride::inline interpose
