// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/left_reason.hpp"

#include <algorithm>

#include "interpose/collectives/communicator.hpp"
#include "interpose/collectives/dispatch.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/neighbor_queue.hpp"
#include "interpose/collectives/one_node.hpp"
#include "interpose/collectives/one_node_neighbors.hpp"
#include "perfmodel/collective/one_node.hpp"

namespace bestride::inline interpose {
namespace {

constexpr const char* new_communicator = "new communicator";
constexpr const char* collective_size = "collective size";
constexpr const char* off = "collectives off";
constexpr const char* unsupported = "unsupported";
constexpr const char* memory = "memory";
constexpr const char* order = "order";

bool on_one_node(CommEntry& entry) noexcept {
  const Topology& world = job()->topology;
  for (int rank = 0; rank < entry.size(); ++rank)
    if (const int here = entry.world_rank(rank); here < 0 || world.node_of(here) != world.node_of(entry.world_rank(0)))
      return false;
  return true;
}

/// The reason that holds for every collective of this communicator; nullptr: there is none. *found: its entry.
const char* by_communicator(MPI_Comm comm, const CommEntry** found) noexcept {
  CommEntry* const entry = runtime().comms.find(comm);
  *found = entry;
  if (entry && entry->size() < 2) return entry->size() == 0 ? unsupported : "nothing to move";
  if (!runtime().all_ranks_take_part()) return "not all ranks";
  if (!job()) return off;
  if (entry && !job()->node_memory && on_one_node(*entry)) return memory;
  if (!entry || !collectives_of(*entry).agreed.load(std::memory_order_acquire)) return new_communicator;
  return nullptr;
}

/// The reason of a blocking collective that has no shared memory.
const char* without_memory(const CommCollectives& collectives, bool refused, PartKind kind) noexcept {
  return refused || (collectives.memory && collectives.memory->lacks_memory(kind)) ? memory : new_communicator;
}

bool by_size(const LeftCollective& left, const CommEntry& entry) noexcept {
  const CommCollectives& collectives = collectives_of(entry);
  if (!left.bytes) return false;
  if (!collectives.on_one_node)
    return collectives.leaves(left.what, left.blocking ? CallForm::blocking : CallForm::nonblocking, *left.bytes);
  return left.blocking ? choose_on_one_node(left.what, *left.bytes, entry.size(), collectives.shares_always,
                                            job()->settings.one_node) != OneNodeChoice::shared_memory
                       : !nonblocking_on_one_node(left.what, *left.bytes, entry.size(), collectives.shares_always,
                                                  job()->settings.one_node);
}

const char* by_communicator_or_size(const LeftCollective& left, const CommEntry** found) noexcept {
  if (const char* const reason = by_communicator(left.comm, found)) return reason;
  if (left.in_place) return unsupported;
  if (!by_size(left, **found)) return nullptr;
  return collectives_of(**found).on_one_node ? collective_size : "model";
}

/// The reason apart from the communicator, the size and the operation.
const char* otherwise(const LeftCollective& left, const CommEntry& entry) noexcept {
  const CommCollectives& collectives = collectives_of(entry);
  if (!collectives.on_one_node) return !left.bytes ? unsupported : collectives.queue ? "model" : off;
  if (left.blocking)
    return collectives.one_node && collectives.one_node->has_memory()
               ? collective_size
               : without_memory(collectives, collectives.one_node && collectives.one_node->refused(),
                                PartKind::blocking);
  if (!job()->nonblocking_on_node) return off;
  const bool rooted = left.what == Collective::gather || left.what == Collective::scatter;
  return rooted && !left.bytes ? unsupported : new_communicator;
}

/// True if the members find out, sooner or later, whether the reduction may be carried out. `element`: packed bytes.
bool order_is_found_out(const LeftCollective& left, const DispatchedReduction& how, MPI_Op op, MPI_Datatype type,
                        std::int64_t element) noexcept {
  const std::int64_t count = left.bytes.value_or(0) / std::max<std::int64_t>(element, 1);
  switch (left.what) {
    case Collective::allreduce:
      return how.if_ordinary || (how.if_library_agrees && finds_sum_order({left.what, 0, op, type, count}));
    case Collective::reduce: return how.if_library_agrees && finds_sum_order({left.what, 0, op, type, count});
    default: return false;
  }
}

}  // namespace

const char* left_reason(const LeftCollective& left) noexcept {
  const CommEntry* entry;
  const char* const reason = by_communicator_or_size(left, &entry);
  return reason ? reason : otherwise(left, *entry);
}

const char* left_reason(const LeftCollective& left, MPI_Op op, MPI_Datatype type) noexcept {
  const CommEntry* entry;
  if (const char* const reason = by_communicator_or_size(left, &entry)) return reason;
  const std::int64_t element = element_size(type).packed;
  const DispatchedReduction how = dispatch_reduction(*entry, op, type, element, left.blocking);
  if (!how.in_some_order) return unsupported;
  if (how.possible) return otherwise(left, *entry);
  const CommCollectives& collectives = collectives_of(*entry);
  if (!collectives.on_one_node)
    return how.if_ordinary && left.what == Collective::allreduce ? otherwise(left, *entry) : order;
  // On one node, whether the order matters is found out once there is memory.
  return !(collectives.one_node && collectives.one_node->has_memory()) &&
                 order_is_found_out(left, how, op, type, element)
             ? otherwise(left, *entry)
             : order;
}

const char* left_neighbor_reason(MPI_Comm comm, NeighborForm form, bool blocking) noexcept {
  const CommEntry* entry;
  if (const char* const reason = by_communicator(comm, &entry)) return reason;
  const CommCollectives& collectives = collectives_of(*entry);
  if (!collectives.on_one_node) return unsupported;
  if (!blocking)
    return !job()->nonblocking_on_node  ? off
           : collectives.neighbor_queue ? collectives.neighbor_queue->serves(form) ? new_communicator : unsupported
           : collectives.edges_sought   ? off
                                        : new_communicator;
  const auto& neighbors = collectives.one_node_neighbors;
  return neighbors && neighbors->has_memory()
             ? unsupported
             : without_memory(collectives, neighbors && neighbors->refused(), PartKind::neighbors);
}

}  // namespace bestride::inline interpose
