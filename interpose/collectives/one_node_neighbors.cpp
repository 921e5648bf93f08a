// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/one_node_neighbors.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/message.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/one_node.hpp"
#include "interpose/collectives/one_node_wait.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

constexpr int neighbor_calls_before = 2;  ///< calls of a communicator before its memory is made
/// A graph whose edges need more memory than this, and more than the limit of a communicator, is left to the library.
constexpr std::int64_t least_limit = std::int64_t{4} << 20;

/// What the members tell each other first.
struct MemberEdges {
  std::int32_t good = 0, process = 0, in = 0, out = 0;
};

/// One rank's ends of all its edges, and arrays for the calls that find them.
struct FoundEdges {
  std::vector<MemberEdges> members;
  std::vector<EdgeEnd> out;
  std::array<std::vector<EdgeEnd>, neighbor_forms> in;
  std::vector<int> sent, received, ones, in_order;
  std::vector<MPI_Aint> at;
  std::vector<MPI_Datatype> types;

  /// May throw std::bad_alloc; nothing below does.
  FoundEdges(int ranks, const Neighbours& neighbours)
      : members(static_cast<std::size_t>(ranks)), out(neighbours.destinations.size()) {
    const std::size_t most = std::max(neighbours.sources.size(), neighbours.destinations.size()) + 1;
    for (auto& ends : in) ends.resize(neighbours.sources.size());
    for (auto* numbers : {&sent, &received, &in_order}) numbers->resize(most);
    ones.assign(most, 1);
    at.resize(most);
    types.assign(most, MPI_INT);
    for (std::size_t i = 0; i < most; ++i) {
      in_order[i] = static_cast<int>(i);
      at[i] = static_cast<MPI_Aint>(i * sizeof(int));
    }
  }
  /// `first`: number of this rank's first outgoing edge. False: a call has failed.
  bool find(MPI_Comm comm, const Neighbours& neighbours, int first, bool equal_degrees) noexcept {
    for (std::size_t i = 0; i < out.size(); ++i) {
      sent[i] = first + static_cast<int>(i);
      if (const int peer = neighbours.destinations[i]; peer >= 0)
        out[i] = {sent[i], peer, members[static_cast<std::size_t>(peer)].process};
    }
    bool good = true;
    for (int form = 0; form < neighbor_forms; ++form) {
      std::fill(received.begin(), received.end(), -1);
      int* const to = received.data();
      switch (static_cast<NeighborForm>(form)) {
        case NeighborForm::alltoall:
          good &= real.Neighbor_alltoall(sent.data(), 1, MPI_INT, to, 1, MPI_INT, comm) == MPI_SUCCESS;
          break;
        case NeighborForm::alltoallv:
          good &= real.Neighbor_alltoallv(sent.data(), ones.data(), in_order.data(), MPI_INT, to, ones.data(),
                                          in_order.data(), MPI_INT, comm) == MPI_SUCCESS;
          break;
        case NeighborForm::alltoallw:
          if (!equal_degrees) continue;
          good &= real.Neighbor_alltoallw(sent.data(), ones.data(), at.data(), types.data(), to, ones.data(), at.data(),
                                          types.data(), comm) == MPI_SUCCESS;
          break;
      }
      for (std::size_t i = 0; i < neighbours.sources.size(); ++i) {
        const int peer = neighbours.sources[i];
        if (peer < 0) continue;
        good &= received[i] >= 0;
        in[static_cast<std::size_t>(form)][i] = {received[i], peer, members[static_cast<std::size_t>(peer)].process};
      }
    }
    return good;
  }
};

}  // namespace

std::shared_ptr<OneNodeNeighbors> OneNodeNeighbors::make(MPI_Comm comm, CommEntry& entry) noexcept {
  const Job* all = job();
  if (!all) return nullptr;
  const Neighbours& neighbours = entry.neighbours();
  MemberEdges own;
  std::optional<FoundEdges> found;
  try {
    if (neighbours.known) found.emplace(entry.size(), neighbours);
  } catch (...) {
  }
  // A member without memory still takes part in telling each other, with an array that needs none.
  std::array<MemberEdges, RoundsShape::max_ranks> told;
  own.good = found.has_value();
  own.process = getpid();
  own.in = static_cast<std::int32_t>(neighbours.sources.size());
  own.out = static_cast<std::int32_t>(neighbours.destinations.size());
  constexpr int words = sizeof own / sizeof(std::int32_t);
  if (real.Allgather(&own, words, MPI_INT32_T, told.data(), words, MPI_INT32_T, comm) != MPI_SUCCESS) return nullptr;
  const auto ranks = static_cast<std::size_t>(entry.size());
  std::int64_t edges = 0, first = 0;
  bool equal_degrees = true;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (!told[rank].good) return nullptr;
    if (static_cast<int>(rank) == entry.rank()) first = edges;
    edges += told[rank].out;
    equal_degrees = equal_degrees && told[rank].in == told[rank].out;
  }
  const std::int64_t limit = all->settings.window_limit;
  const EdgesShape shape = EdgesShape::within(entry.size(), edges, limit);
  const auto bytes = static_cast<std::int64_t>(shape.bytes());
  if (edges > std::numeric_limits<int>::max() || bytes > std::max(limit, least_limit)) {
    log_info_once("edges",
                  "a virtual topology has %lld edges, which need %lld MiB of shared memory; its neighbour collectives "
                  "are left to the MPI library (BESTRIDE_WINDOW_LIMIT)",
                  static_cast<long long>(edges), static_cast<long long>(bytes >> 20));
    return nullptr;
  }
  std::copy_n(told.begin(), ranks, found->members.begin());
  const bool good = found->find(comm, neighbours, static_cast<int>(first), equal_degrees);
  SharedWindow window(comm, entry.rank() == 0, bytes);
  if (!window.data()) return nullptr;
  std::shared_ptr<OneNodeNeighbors> made;
  try {
    if (good)
      made.reset(new OneNodeNeighbors(std::move(window), shape, entry.rank(), found->out, std::move(found->in),
                                      equal_degrees));
  } catch (...) {
  }
  return all_share_memory(comm, made != nullptr) ? made : nullptr;
}

void OneNodeNeighbors::exchange(NeighborForm form, const Operands& input, const Operands& output) noexcept {
  const std::span<const EdgeEnd> in = in_[static_cast<std::size_t>(form)];
  edges_.begin();
  wait_on_one_node(edges_, [&] { return edges_.step(in, input, output); });
  if (window_count.load(std::memory_order_relaxed) > 0) let_others_progress();
  if (edges_.copies_refused())
    log_info_once("copies",
                  "the kernel forbids copies from other ranks' memory (process_vm_readv); neighbour collectives of "
                  "long messages copy twice");
  // MPICH 4.0.2 returns MPI_SUCCESS.
  if (edges_.truncated())
    warn_once("truncated",
              "a neighbour collective has received a message that is longer than its block; its end is lost (the "
              "counts of source and destination differ)");
}

OneNodeNeighbors* choose_one_node_neighbors(MPI_Comm comm, CommEntry& entry, NeighborForm form) noexcept {
  if (!job() || !may_share_memory(entry)) return nullptr;
  CommCollectives& collectives = entry.collectives;
  if (!collectives.one_node_neighbors) {
    if (collectives.neighbor_calls > neighbor_calls_before) return nullptr;
    if (collectives.neighbor_calls++ < neighbor_calls_before) return nullptr;
    collectives.one_node_neighbors = OneNodeNeighbors::make(comm, entry);
  }
  OneNodeNeighbors* const made = collectives.one_node_neighbors.get();
  return made && made->serves(form) ? made : nullptr;
}

}  // namespace bestride::inline interpose
