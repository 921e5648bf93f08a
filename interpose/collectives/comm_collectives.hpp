// SPDX-License-Identifier: Apache-2.0
#pragma once
// State of a communicator's collectives. Data only. It lies behind the communicator's entry in the registry.
#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "interpose/objects/comm_registry.hpp"
#include "perfmodel/collective/choice.hpp"
#include "perfmodel/collective/one_node.hpp"

namespace bestride::inline interpose {

class CollectiveQueue;
class CommMemory;
class NeighborQueue;
class OneNode;
class OneNodeNeighbors;

enum class CallForm : std::uint8_t { nonblocking, blocking, persistent };
inline constexpr std::size_t call_form_count = 3;

/// Values of the info keys that are set on a communicator (interpose/collectives/info_hints.hpp). The same on all
/// members.
struct CommHints {
  static constexpr int none = -1;
  int quantize = none;     ///< bits per code; 0: off
  int reassociate = none;  ///< 0 or 1
  int format = none;       ///< format of 16-bit integers: a NumberFormat
};

/// How much a communicator has been used: its calls, and the pages that they have moved.
struct Usage {
  /// A new small part of shared memory takes as long as 4 short calls of the MPI library, a full one as long as 60. So
  /// it costs less than a sixteenth of what the calls before it have taken, and the calls after it are faster.
  static constexpr std::int64_t small_pays = 64, full_pays = 1024;
  std::int64_t sum = 0;
  void add(std::int64_t bytes) noexcept { sum += 1 + bytes / 4096; }
};

/// How the MPI library adds the floating-point numbers of all ranks in one reduction (interpose/collectives/
/// library_order.hpp). The same on all members.
struct SumOrder {
  static constexpr int calls_before = 16;  ///< calls until the order is found out, by default
  /// `balanced` and `paired` are the forms of ReductionTree with these names; `different`: Bestride can't follow the
  /// library's order.
  enum class Answer : std::uint8_t { unknown, balanced, paired, different };
  std::int64_t count = 0;  ///< elements; 0: not in use
  std::int32_t root = 0;
  Collective what{};
  std::uint8_t number_bytes = 0;  ///< of a number, or of half a complex number
  bool complex = false;
  std::uint8_t calls = 0;
  Answer answer = Answer::unknown;
  AskingInterval asking;  ///< whether a result may be a NaN
};

/// A record of the memory that the ranks of a node share (interpose/collectives/node_memory.hpp).
struct NodeRecord {
  int index = -1;        ///< the same on all members; -1: none
  int ranks = 0;         ///< members that know it
  bool written = false;  ///< the same on all members: it may not be zero any more, and a member may still look at it
  /// This member does not look at it any more; on rank 0, which has taken it: gives it back.
  void (*put_back)(const NodeRecord&) noexcept = nullptr;

  NodeRecord() = default;
  NodeRecord(NodeRecord&& other) noexcept { *this = std::move(other); }
  NodeRecord& operator=(NodeRecord&& other) noexcept {
    std::swap(index, other.index);
    std::swap(ranks, other.ranks);
    std::swap(written, other.written);
    std::swap(put_back, other.put_back);
    return *this;
  }
  ~NodeRecord() {
    if (put_back) put_back(*this);
  }
};

/// Not copyable. `shape`, `sizes` and, between nodes, `queue` are written before `agreed` is set and are
/// read-only after that. The other members change only in calls that all members of the communicator make. What calls
/// on one node need is made by the first of them that may gain by it (interpose/collectives/comm_parts.hpp).
struct CommCollectives {
  CommHints hints;
  bool remembered = true;           ///< false: a temporary entry for one call; it has no agreement among the members
  std::atomic<bool> agreed{false};  ///< the members have agreed whether there is a queue
  bool on_one_node = false;         ///< written before `agreed`: all members are on one node, and each has
                                    ///< an entry for the communicator
  bool shares_always = false;       ///< written before `agreed`: at every size
  NodeRecord record;                ///< written before `agreed`: on one node
  int leader = -1;                  ///< written before `agreed`: on one node, the local rank of rank 0
  std::uint32_t children = 0;       ///< communicators that its members have created from it
  std::uint32_t elder = 0;          ///< the same of its ancestors, when it was created
  std::size_t known_grids = 0;      ///< when it was created (interpose/collectives/neighbor_edges.hpp)
  std::shared_ptr<CommMemory> memory;
  std::shared_ptr<OneNode> one_node;
  int blocking_calls = 0;   ///< before there is `one_node`
  bool call_begun = false;  ///< before there is `one_node`: the present call is counted
  int one_node_starts = 0;  ///< nonblocking collectives that would have gone through shared memory
  Usage usage;              ///< of these
  std::shared_ptr<OneNodeNeighbors> one_node_neighbors;
  int neighbor_calls = 0;                               ///< before there is `one_node_neighbors`
  std::array<AskingInterval, collective_count> asking;  ///< by collective: whether a datatype has gaps
  AskingInterval extremes;                              ///< whether maxima and minima depend on the order
  std::shared_ptr<CollectiveQueue> queue;               ///< between nodes, null: all collectives are left to MPI
  std::shared_ptr<NeighborQueue> neighbor_queue;
  int neighbor_starts = 0;                       ///< nonblocking neighbor collectives
  bool edges_wanted = false;                     ///< the next call that may wait looks for the edges that these need
  bool edges_sought = false;                     ///< it has
  static constexpr long max_persistent = 64;     ///< persistent collectives with a queue, at a time
  std::shared_ptr<char> persistent_collectives;  ///< the queue of each persistent collective holds a reference
  std::array<SumOrder, 16> sum_orders;           ///< in use from the front; reductions of other sizes are left to MPI
  CollectiveShape shape;                         ///< shape of the communicator; a call fills in operation and bytes
  /// Collectives of other sizes are left to MPI. Indices: the collective, its CallForm. Valid after `agreed` is set.
  std::array<std::array<OneNodeBounds, call_form_count>, collective_count> sizes{};

  const OneNodeBounds& sizes_of(Collective what, CallForm form) const noexcept {
    return sizes[static_cast<std::size_t>(what)][static_cast<std::size_t>(form)];
  }
  /// True if the members have agreed to leave such a collective to MPI. The same on all of them.
  bool leaves(Collective what, CallForm form, std::int64_t bytes) const noexcept {
    return agreed.load(std::memory_order_acquire) && !sizes_of(what, form).include(bytes);
  }
};

/// Pass to CommEntry::set_state() before the first entry is made.
inline constexpr CommState collectives_state = {
    sizeof(CommCollectives), [](void* place) noexcept { ::new (place) CommCollectives; },
    [](void* state) noexcept { static_cast<CommCollectives*>(state)->~CommCollectives(); }};

inline CommCollectives& collectives_of(CommEntry& entry) noexcept {
  static_assert(alignof(CommCollectives) <= alignof(CommEntry));
  return *static_cast<CommCollectives*>(entry.state());
}
inline const CommCollectives& collectives_of(const CommEntry& entry) noexcept {
  return *static_cast<const CommCollectives*>(entry.state());
}

}  // namespace bestride::inline interpose
