// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/comm_registry.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <numeric>
#include <utility>

#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/runtime.hpp"
#include "interpose/objects/spare_memory.hpp"

namespace bestride::inline interpose {
namespace {

constinit SpareMemory spare_entry;

}  // namespace

void* CommEntry::operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  void* const kept = spare_entry.take();
  return kept ? kept : std::malloc(bytes + state_.bytes);
}

void CommEntry::operator delete(void* entry) noexcept { std::free(spare_entry.keep(entry)); }

CommEntry::CommEntry(MPI_Comm comm, const CommEntry& parent, ChildRanks ranks) noexcept
    : comm_(comm),
      locality_(parent.locality_),
      peers_(parent.peers_),
      made_(true),
      rank_(parent.rank_),
      size_(parent.size_) {
  if (state_.construct) state_.construct(state());
  valid_ =
      ranks == ChildRanks::same || ((ranks == ChildRanks::in_order || real.Comm_rank(comm, &rank_) == MPI_SUCCESS) &&
                                    real.Comm_size(comm, &size_) == MPI_SUCCESS);
  ranks_of_parent_ = ranks != ChildRanks::any && size_ == parent.size_;
}

CommEntry::CommEntry(MPI_Comm comm, const Locality& locality, PeerDiscovery& peers, bool made) noexcept
    : comm_(comm), locality_(locality), peers_(peers), made_(made) {
  if (state_.construct) state_.construct(state());
  if (real.Comm_test_inter(comm, &inter_) != MPI_SUCCESS) return;
  valid_ = inter_ || (real.Comm_rank(comm, &rank_) == MPI_SUCCESS && real.Comm_size(comm, &size_) == MPI_SUCCESS);
}

Distance CommEntry::to_other(int peer) noexcept {
  if (peer == MPI_ANY_SOURCE) return farthest();
  const bool one_host = locality_.one_host();
  const int there = one_host || locality_.local_ranks > 0 ? world_rank(peer) : MPI_UNDEFINED;
  if (there == MPI_UNDEFINED) return one_host ? Distance::node : Distance::network;
  const Distance distance = locality_.to(there);
  return distance == Distance::node ? peers_.distance_to(there) : distance;
}

int CommEntry::world_rank(int peer) noexcept {
  if (comm_ == MPI_COMM_WORLD) return peer;
  try {
    std::call_once(world_ranks_read_, [this] { read_world_ranks(); });
  } catch (...) {
  }
  return peer < 0 || static_cast<std::size_t>(peer) >= world_ranks_.size()
             ? MPI_UNDEFINED
             : world_ranks_[static_cast<std::size_t>(peer)];
}

void CommEntry::read_world_ranks() {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Group world = MPI_GROUP_NULL;
  int size = 0;
  if ((inter_ ? real.Comm_remote_group(comm_, &group) : real.Comm_group(comm_, &group)) != MPI_SUCCESS) return;
  if (real.Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS && real.Group_size(group, &size) == MPI_SUCCESS) {
    std::vector<int> here(static_cast<std::size_t>(size));
    std::vector<int> there(static_cast<std::size_t>(size));
    std::iota(here.begin(), here.end(), 0);
    if (real.Group_translate_ranks(group, size, here.data(), world, there.data()) == MPI_SUCCESS)
      world_ranks_ = std::move(there);
    real.Group_free(&world);
  }
  real.Group_free(&group);
}

Distance CommEntry::farthest() noexcept {
  const int known = farthest_.load(std::memory_order_relaxed);
  if (known >= 0) return static_cast<Distance>(known);
  const Distance largest = locality_.one_host() ? Distance::node : Distance::network;
  // The size of an inter-communicator is not recorded: assume the largest distance.
  Distance distance = size_ > 0 ? Distance::self : largest;
  for (int peer = 0; peer < size_ && distance < largest; ++peer) distance = std::max(distance, to(peer));
  farthest_.store(static_cast<int>(distance), std::memory_order_relaxed);
  return distance;
}

const Neighbors& CommEntry::neighbors() noexcept {
  try {
    std::call_once(neighbors_read_, [this] { read_neighbors(); });
  } catch (...) {
    neighbors_.known = false;
  }
  return neighbors_;
}

void CommEntry::read_neighbors() {
  int topology = MPI_UNDEFINED;
  if (real.Topo_test(comm_, &topology) != MPI_SUCCESS) return;
  std::vector<int>& sources = neighbors_.sources;
  std::vector<int>& destinations = neighbors_.destinations;
  if (topology == MPI_CART) {
    int dimensions = 0;
    if (real.Cartdim_get(comm_, &dimensions) != MPI_SUCCESS) return;
    for (int dimension = 0; dimension < dimensions; ++dimension) {
      int before = MPI_PROC_NULL;
      int after = MPI_PROC_NULL;
      if (real.Cart_shift(comm_, dimension, 1, &before, &after) != MPI_SUCCESS) return;
      sources.push_back(before);
      sources.push_back(after);
    }
    destinations = sources;
  } else if (topology == MPI_GRAPH) {
    int count = 0;
    if (real.Graph_neighbors_count(comm_, rank_, &count) != MPI_SUCCESS) return;
    sources.resize(static_cast<std::size_t>(count));
    if (real.Graph_neighbors(comm_, rank_, count, sources.data()) != MPI_SUCCESS) return;
    destinations = sources;
  } else if (topology == MPI_DIST_GRAPH) {
    int in = 0;
    int out = 0;
    int weighted = 0;
    if (real.Dist_graph_neighbors_count(comm_, &in, &out, &weighted) != MPI_SUCCESS) return;
    sources.resize(static_cast<std::size_t>(in));
    destinations.resize(static_cast<std::size_t>(out));
    std::vector<int> in_weights(static_cast<std::size_t>(in) + 1);
    std::vector<int> out_weights(static_cast<std::size_t>(out) + 1);
    if (real.Dist_graph_neighbors(comm_, in, sources.data(), in_weights.data(), out, destinations.data(),
                                  out_weights.data()) != MPI_SUCCESS)
      return;
  } else {
    return;
  }
  neighbors_.known = true;
}

void* CommRegistry::reserve() noexcept {
  if (inject_failure(FailPoint::communicator) || inject_failure(FailPoint::made) || !table_.reserve()) return nullptr;
  return CommEntry::operator new(sizeof(CommEntry), std::nothrow);
}

CommEntry* CommRegistry::made(MPI_Comm comm, void* reserved, const CommEntry& parent, ChildRanks ranks) noexcept {
  auto* const entry = new (reserved) CommEntry(comm, parent, ranks);
  CommEntry* replaced = nullptr;
  if (entry->valid() && table_.insert(comm, entry, &replaced)) {
    delete replaced;  // of an earlier communicator whose end was not intercepted
    return entry;
  }
  delete entry;
  mark_incomplete();
  return nullptr;
}

void CommRegistry::made(MPI_Comm comm) noexcept {
  // An existing entry belongs to an earlier communicator whose end was not intercepted.
  delete table_.remove(comm);
  insert(comm, true);
}

void CommRegistry::insert(MPI_Comm comm, bool made) noexcept {
  if (comm == MPI_COMM_NULL) return;
  const bool own = comm == MPI_COMM_WORLD || comm == MPI_COMM_SELF;
  auto* entry = inject_failure(FailPoint::communicator) || (!own && inject_failure(FailPoint::made))
                    ? nullptr
                    : new (std::nothrow) CommEntry(comm, runtime().locality(), runtime().peers(), made);
  if (entry && !entry->valid()) return delete entry;
  // Two threads may insert the same communicator at once.
  CommEntry* known = entry ? table_.insert_if_absent(comm, entry) : nullptr;
  if (known != entry) delete entry;
  if (!known) mark_incomplete();
}

void CommRegistry::put_back(MPI_Comm comm, CommEntry* entry) noexcept {
  if (table_.insert_if_absent(comm, entry) == entry) return;
  delete entry;
  mark_incomplete();
}

}  // namespace bestride::inline interpose
