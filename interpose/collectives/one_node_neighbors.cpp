// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/one_node_neighbors.hpp"

#include <utility>

#include "base/message.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/one_node.hpp"
#include "interpose/collectives/one_node_wait.hpp"
#include "interpose/collectives/pending.hpp"

namespace bestride::inline interpose {
std::shared_ptr<OneNodeNeighbors> OneNodeNeighbors::make(MPI_Comm comm, CommEntry& entry) noexcept {
  const Job* all = job();
  if (!all) return nullptr;
  FoundEdges found = find_edges(comm, entry, CallForm::blocking, all->settings.window_limit);
  if (!found.possible) return nullptr;
  SharedWindow window(comm, entry.rank() == 0, static_cast<std::int64_t>(found.shape.bytes()));
  if (!window.data()) return nullptr;
  std::shared_ptr<OneNodeNeighbors> made;
  try {
    if (found.edges)
      made.reset(new OneNodeNeighbors(std::move(window), found.shape, entry.rank(), std::move(*found.edges)));
  } catch (...) {
  }
  return all_share_memory(comm, made != nullptr) ? made : nullptr;
}

void OneNodeNeighbors::exchange(NeighborForm form, const Operands& input, const Operands& output) noexcept {
  const std::span<const EdgeEnd> in = found_.incoming(form);
  edges_.begin();
  wait_on_one_node(edges_, [&] { return edges_.step(in, input, output); });
  if (window_count.load(std::memory_order_relaxed) > 0) let_others_progress();
  report_exchange(edges_.copies_refused(), edges_.truncated());
}

void report_exchange(bool copies_refused, bool truncated) noexcept {
  if (copies_refused)
    log_info_once("copies",
                  "the kernel forbids copies from other ranks' memory (process_vm_readv); neighbour collectives of "
                  "long messages copy twice");
  // MPICH 4.0.2 returns MPI_SUCCESS.
  if (truncated)
    warn_once("truncated",
              "a neighbour collective has received a message that is longer than its block; its end is lost (the "
              "counts of source and destination differ)");
}

OneNodeNeighbors* choose_one_node_neighbors(MPI_Comm comm, CommEntry& entry, NeighborForm form) noexcept {
  if (!job() || !may_share_memory(entry)) return nullptr;
  CommCollectives& collectives = entry.collectives;
  if (!collectives.one_node_neighbors) {
    if (collectives.neighbor_calls > OneNode::calls_before) return nullptr;
    if (collectives.neighbor_calls++ < OneNode::calls_before) return nullptr;
    before_library_collective(comm);
    collectives.one_node_neighbors = OneNodeNeighbors::make(comm, entry);
  }
  OneNodeNeighbors* const made = collectives.one_node_neighbors.get();
  return made && made->serves(form) ? made : nullptr;
}

}  // namespace bestride::inline interpose
