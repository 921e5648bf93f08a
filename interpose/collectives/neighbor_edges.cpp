// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/neighbor_edges.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "base/message.hpp"
#include "collectives/one_node/rounds.hpp"
#include "interpose/collectives/maximum.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

/// A graph whose edges need more memory than this, and more than the limit of a communicator, is left to the library.
constexpr std::int64_t least_limit = std::int64_t{4} << 20;

/// What the members tell each other first.
struct MemberEdges {
  std::int32_t good = 0, process = 0, in = 0, out = 0;
  std::int32_t parallel = 0;  ///< several edges lead to the same rank
  std::int32_t to_you = 0;    ///< edges from the member that says this to the one that reads it
};

/// By rank; a member without memory needs none for it.
using AllMembers = std::array<MemberEdges, RoundsShape::max_ranks>;

/// True if this member says the same of the edges to it as their sources do. MPI does not check this when a graph is
/// made, and the library's neighbor collectives wait forever if it is not so.
bool sources_agree(std::span<const MemberEdges> members, const std::vector<int>& sources) noexcept {
  std::array<std::int32_t, RoundsShape::max_ranks> from{};
  for (const int source : sources)
    if (source >= 0) ++from[static_cast<std::size_t>(source)];
  return std::equal(members.begin(), members.end(), from.begin(),
                    [](const MemberEdges& member, std::int32_t edges) { return member.to_you == edges; });
}

bool has_parallel(std::vector<int> peers) {
  std::sort(peers.begin(), peers.end());
  const auto first = std::find_if(peers.begin(), peers.end(), [](int peer) { return peer >= 0; });
  return std::adjacent_find(first, peers.end()) != peers.end();
}

template <class Call, class Icall, class Init, class... Arguments>
bool succeeds(CallForm form, Call call, Icall icall, [[maybe_unused]] Init init, Arguments... arguments) noexcept {
  if (form == CallForm::blocking) return call(arguments...) == MPI_SUCCESS;
  MPI_Request request = MPI_REQUEST_NULL;
#if MPI_VERSION >= 4
  if (form == CallForm::persistent) {
    if (init(arguments..., MPI_INFO_NULL, &request) != MPI_SUCCESS) return false;
    const bool good = real.Start(&request) == MPI_SUCCESS && real.Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
    return real.Request_free(&request) == MPI_SUCCESS && good;
  }
#endif
  return icall(arguments..., &request) == MPI_SUCCESS && real.Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

/// Calls of the library that find the edges, and their arrays.
class Trials {
 public:
  /// May throw std::bad_alloc; nothing below does.
  explicit Trials(const Neighbors& neighbors) : neighbors_(neighbors), edges_(new NeighborEdges) {
    edges_->out.resize(neighbors.destinations.size());
    for (auto& ends : edges_->in) ends.resize(neighbors.sources.size());
    const std::size_t most = std::max(neighbors.sources.size(), neighbors.destinations.size()) + 1;
    for (auto* numbers : {&sent_, &received_, &in_order_}) numbers->resize(most);
    ones_.assign(most, 1);
    at_.resize(most);
    types_.assign(most, MPI_INT);
    for (std::size_t i = 0; i < most; ++i) {
      in_order_[i] = static_cast<int>(i);
      at_[i] = static_cast<MPI_Aint>(i * sizeof(int));
    }
  }
  /// `first`: number of this rank's first outgoing edge. `parallel`: several edges join the same two ranks, on any
  /// member. False: a call has failed.
  bool run(MPI_Comm comm, CallForm calls, std::span<const MemberEdges> members, int first, bool parallel) noexcept {
    for (std::size_t i = 0; i < edges_->out.size(); ++i) {
      sent_[i] = first + static_cast<int>(i);
      if (const int peer = neighbors_.destinations[i]; peer >= 0)
        edges_->out[i] = {sent_[i], peer, members[static_cast<std::size_t>(peer)].process};
    }
    bool good = true;
    for (int form = 0; form < neighbor_forms; ++form) {
      const auto of_form = static_cast<NeighborForm>(form);
      if (!edges_->serves(of_form)) continue;
      auto& ends = edges_->in[static_cast<std::size_t>(form)];
      if (form > 0 && !parallel) {
        std::copy(edges_->in[0].begin(), edges_->in[0].end(), ends.begin());
        continue;
      }
      std::fill(received_.begin(), received_.end(), -1);
      good &= call(comm, calls, of_form);
      for (std::size_t i = 0; i < ends.size(); ++i) {
        const int peer = neighbors_.sources[i];
        if (peer < 0) continue;
        good &= received_[i] >= 0;
        ends[i] = {received_[i], peer, members[static_cast<std::size_t>(peer)].process};
      }
    }
    return good;
  }
  NeighborEdges& edges() noexcept { return *edges_; }
  std::unique_ptr<NeighborEdges> take() noexcept { return std::move(edges_); }

 private:
#if MPI_VERSION >= 4
#define BESTRIDE_ALL_FORMS(name) real.Neighbor_##name, real.Ineighbor_##name, real.Neighbor_##name##_init
#else
#define BESTRIDE_ALL_FORMS(name) real.Neighbor_##name, real.Ineighbor_##name, nullptr
#endif
  bool call(MPI_Comm comm, CallForm calls, NeighborForm form) noexcept {
    const int *const ones = ones_.data(), *const in_order = in_order_.data(), *const from = sent_.data();
    int* const to = received_.data();
    switch (form) {
      case NeighborForm::alltoall:
        return succeeds(calls, BESTRIDE_ALL_FORMS(alltoall), from, 1, MPI_INT, to, 1, MPI_INT, comm);
      case NeighborForm::alltoallv:
        return succeeds(calls, BESTRIDE_ALL_FORMS(alltoallv), from, ones, in_order, MPI_INT, to, ones, in_order,
                        MPI_INT, comm);
      case NeighborForm::alltoallw:
        return succeeds(calls, BESTRIDE_ALL_FORMS(alltoallw), from, ones, at_.data(), types_.data(), to, ones,
                        at_.data(), types_.data(), comm);
    }
    return false;
  }
#undef BESTRIDE_ALL_FORMS

  const Neighbors& neighbors_;
  std::unique_ptr<NeighborEdges> edges_;
  std::vector<int> sent_, received_, ones_, in_order_;
  std::vector<MPI_Aint> at_;
  std::vector<MPI_Datatype> types_;
};

/// Describes a grid: its form of calls, sizes, periods and ranks. Empty: it is another topology, or unknown.
std::vector<int> description_of(MPI_Comm comm, CommEntry& entry, CallForm calls) {
  std::vector<int> description;
  int topology = MPI_UNDEFINED, dimensions = 0;
  if (real.Topo_test(comm, &topology) != MPI_SUCCESS || topology != MPI_CART ||
      real.Cartdim_get(comm, &dimensions) != MPI_SUCCESS)
    return description;
  const auto count = static_cast<std::size_t>(dimensions);
  description.resize(2 + 3 * count);
  int* const first = description.data();
  if (real.Cart_get(comm, dimensions, first + 2, first + 2 + count, first + 2 + 2 * count) != MPI_SUCCESS) return {};
  description[0] = static_cast<int>(calls);
  description[1] = dimensions;
  description.resize(2 + 2 * count);  // without the coordinates of this rank
  for (int rank = 0; rank < entry.size(); ++rank) description.push_back(entry.world_rank(rank));
  return description;
}

/// Grids whose edges have been found. A rank adds one only if all members of the grid do.
class KnownGrids {
 public:
  FoundEdges find(const std::vector<int>& description, std::size_t among) noexcept {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < std::min(among, grids_.size()); ++i)
      if (grids_[i].description == description) return grids_[i].found;
    return {};
  }
  std::size_t count() const noexcept { return count_.load(std::memory_order_relaxed); }
  /// Promises room for one add(). The members agree on it before, because all of them add a grid, or none.
  bool room() noexcept {
    const std::lock_guard lock(mutex_);
    try {
      grids_.reserve(most);
    } catch (...) {
      return false;
    }
    return used_ < most && ++used_ > 0;
  }
  void add(std::vector<int>&& description, const FoundEdges& found) noexcept {
    const std::lock_guard lock(mutex_);
    grids_.push_back({std::move(description), found});
    count_.store(grids_.size(), std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t most = 64;
  struct Grid {
    std::vector<int> description;
    FoundEdges found;
  };
  std::mutex mutex_;
  std::vector<Grid> grids_;
  std::atomic<std::size_t> count_{0};
  std::size_t used_ = 0;  ///< places of `grids_` that are taken or promised
};
/// Never destroyed: destructors of other libraries may call MPI.
KnownGrids& known_grids() noexcept {
  alignas(KnownGrids) static std::byte storage[sizeof(KnownGrids)];
  static KnownGrids* const one = new (storage) KnownGrids;
  return *one;
}

FoundEdges find_new_edges(MPI_Comm comm, CommEntry& entry, CallForm calls, std::int64_t limit) noexcept {
  FoundEdges found;
  const Neighbors& neighbors = entry.neighbors();
  MemberEdges own;
  std::unique_ptr<Trials> trials;
  try {
    if (neighbors.known) {
      own.parallel = has_parallel(neighbors.sources) || has_parallel(neighbors.destinations);
      trials = std::make_unique<Trials>(neighbors);
    }
  } catch (...) {
  }
  own.good = trials != nullptr;
  own.process = getpid();
  own.in = static_cast<std::int32_t>(neighbors.sources.size());
  own.out = static_cast<std::int32_t>(neighbors.destinations.size());
  constexpr int words = sizeof own / sizeof(std::int32_t);
  AllMembers told, members;
  told.fill(own);
  for (const int destination : neighbors.destinations)
    if (destination >= 0) ++told[static_cast<std::size_t>(destination)].to_you;
  if (real.Alltoall(told.data(), words, MPI_INT32_T, members.data(), words, MPI_INT32_T, comm) != MPI_SUCCESS)
    return found;
  const std::span<const MemberEdges> all(members.data(), static_cast<std::size_t>(entry.size()));
  const std::int64_t differs = !sources_agree(all, neighbors.sources);
  std::int64_t any = 1;
  if (real.Allreduce(&differs, &any, 1, MPI_INT64_T, maximum(), comm) != MPI_SUCCESS || any) return found;
  std::int64_t edges = 0, first = 0;
  bool equal_degrees = true, parallel = false;
  for (int rank = 0; rank < entry.size(); ++rank) {
    const MemberEdges& member = members[static_cast<std::size_t>(rank)];
    if (!member.good) return found;
    if (rank == entry.rank()) first = edges;
    edges += member.out;
    equal_degrees = equal_degrees && member.in == member.out;
    parallel = parallel || member.parallel;
  }
  const EdgesShape shape = EdgesShape::within(entry.size(), edges, limit);
  const auto bytes = static_cast<std::int64_t>(shape.bytes());
  if (edges > std::numeric_limits<int>::max() || bytes > std::max(limit, least_limit)) {
    log_info_once("edges",
                  "a virtual topology has %lld edges, which need %lld MiB of shared memory; its neighbor collectives "
                  "are left to the MPI library (BESTRIDE_WINDOW_LIMIT)",
                  static_cast<long long>(edges), static_cast<long long>(bytes >> 20));
    return found;
  }
  trials->edges().equal_degrees = equal_degrees;
  const bool good = trials->run(comm, calls, all, static_cast<int>(first), parallel);
  try {
    found.shape = shape;
    if (good) found.edges = trials->take();
  } catch (...) {
  }
  return found;
}

}  // namespace

bool remembers_edges(MPI_Comm comm) noexcept {
  int topology = MPI_UNDEFINED;
  return real.Topo_test(comm, &topology) == MPI_SUCCESS && topology == MPI_CART;
}

std::size_t known_grid_count() noexcept { return known_grids().count(); }

FoundEdges known_edges(MPI_Comm comm, CommEntry& entry, CallForm calls, std::size_t among) noexcept {
  if (std::min(among, known_grid_count()) == 0) return {};
  try {
    const std::vector<int> description = description_of(comm, entry, calls);
    return description.empty() ? FoundEdges() : known_grids().find(description, among);
  } catch (...) {
    return {};
  }
}

FoundEdges find_edges(MPI_Comm comm, CommEntry& entry, CallForm calls, std::int64_t limit) noexcept {
  FoundEdges found = find_new_edges(comm, entry, calls, limit);
  std::vector<int> description;
  bool described = true;
  try {
    description = description_of(comm, entry, calls);
  } catch (...) {
    described = false;
  }
  // Whether a member has no edges; whether it can't keep them.
  KnownGrids& known = known_grids();
  const std::int64_t own[] = {!found.edges, !described || description.empty() || !known.room()};
  std::int64_t any[] = {1, 1};
  if (real.Allreduce(own, any, 2, MPI_INT64_T, maximum(), comm) != MPI_SUCCESS || any[0]) return {};
  if (!any[1]) known.add(std::move(description), found);
  return found;
}

}  // namespace bestride::inline interpose
