// SPDX-License-Identifier: Apache-2.0
#pragma once
// OneNode: the blocking collectives of a communicator whose members are all on one node, through memory that they
// share. Its nonblocking and persistent ones: one_node_queue.hpp.
//
// The first, 4th, 16th, 64th, 128th ... call asks rank 0 for memory (comm_memory.hpp): many communicators are used a
// few times only. All calls of a kind that may use it count (counts()), so that the members ask in the same calls
// whatever their arguments are.
#include <mpi.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "collectives/one_node/rounds.hpp"
#include "interpose/collectives/comm_collectives.hpp"
#include "interpose/collectives/comm_memory.hpp"
#include "interpose/collectives/comm_parts.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/pending.hpp"
#include "interpose/mpi/nested_calls.hpp"
#include "interpose/objects/comm_registry.hpp"
#include "interpose/objects/runtime.hpp"
#include "perfmodel/collective/one_node.hpp"

namespace bestride::inline interpose {

class Operation;

class OneNode {
 public:
  /// `memory` has no record yet. `full`: shape of the largest memory. `always`: the third call asks for memory of the
  /// full size, however few bytes the calls have moved.
  OneNode(std::shared_ptr<CommMemory> memory, const RoundsShape& full, bool always) noexcept
      : asking_(always, 0), memory_(std::move(memory)), full_(full) {}
  OneNode(const OneNode&) = delete;
  OneNode& operator=(const OneNode&) = delete;
  ~OneNode() {
    if (!has_memory()) memory_->add_left_calls(asking_.usage());
  }
  /// Called once, when the record is set.
  void begin() noexcept { part_.emplace(memory_, PartKind::blocking); }
  const std::shared_ptr<CommMemory>& memory() const noexcept { return memory_; }

  bool has_memory() const noexcept { return rounds_ != nullptr; }
  /// A call has begun.
  bool in_call() const noexcept { return open_; }
  /// Calls have asked for memory in vain.
  bool refused() const noexcept { return settled_ && !has_memory(); }
  /// In a call that has memory.
  std::int64_t part_bytes() const noexcept { return rounds_->part_bytes(); }

  // All members count the communicator's blocking collectives of a kind that counts, those that a member leaves
  // included. A member that finds
  // out something about its own arguments may leave a call at any time: those that wait for it leave it, too.

  /// Begins the next call, unless one has begun; it may ask for memory. `bytes`: how many the call moves, as far as
  /// this rank knows. True: there is memory.
  bool open(std::int64_t bytes) noexcept {
    begin_call(bytes);
    if (rounds_) rounds_->open();
    return rounds_ != nullptr;
  }
  /// Carries out an operation in this call; waits for other members. True: it succeeded. The call goes on.
  bool run(Operation& operation) noexcept;
  /// values[i] becomes the largest of all members'. False: a member has left the call, so this one must leave it, too.
  [[nodiscard]] bool agree(std::span<std::int64_t> values) noexcept;
  /// In a call that has memory.
  Rounds& rounds() noexcept { return *rounds_; }
  /// After a collective that was carried out with rounds(): ends the call. Returns its error; no value: a member has
  /// left the call, so this one must leave it, too.
  std::optional<int> end_at_once(MPI_Comm comm) noexcept;
  /// Between two operations in one call.
  void end_operation() noexcept { rounds_->end_so_far(); }
  void close() noexcept {
    rounds_->close();
    open_ = false;
  }
  /// Ends the call, or the next one if none has begun: it goes to the MPI library.
  void leave() noexcept {
    begin_call(0);
    if (rounds_) rounds_->leave();
    open_ = false;
  }

 private:
  void begin_call(std::int64_t bytes) noexcept {
    if (!open_ && !settled_ && asking_.due(bytes)) [[unlikely]]
      ask();
    open_ = true;
  }
  void ask() noexcept;

  // What each call needs, in one line of the caches.
  Rounds* rounds_ = nullptr;  ///< of part_, or nullptr
  bool settled_ = false, open_ = false;
  AskingForMemory asking_;
  const std::shared_ptr<CommMemory> memory_;
  const RoundsShape full_;
  std::optional<CommPart<Rounds, RoundsShape>> part_;
};

/// True if the members of this communicator have agreed that they may have a OneNode. Costs two loads.
inline bool may_share_memory(const CommEntry& entry) noexcept {
  return collectives_of(entry).agreed.load(std::memory_order_acquire) && collectives_of(entry).on_one_node;
}

/// True if the communicator has a OneNode with memory.
inline bool has_memory(const CommEntry& entry) noexcept {
  const OneNode* const node = collectives_of(entry).one_node.get();
  return node && node->has_memory();
}

/// Begins a blocking collective, of `bytes` bytes as far as this rank knows. True: there is no memory, so the call is
/// left to the MPI library.
inline bool has_no_memory(CommEntry& entry, std::int64_t bytes) noexcept {
  if (!may_share_memory(entry)) return false;
  OneNode* const node = one_node_of_call(entry);
  return !node || !node->open(bytes);
}

/// The communicator's OneNode if a blocking collective goes through it; nullptr: leave it to the MPI library. All
/// members call this with the same `what`, `bytes` and `element`, and get the same answer. `bytes`: the bytes of
/// CollectiveShape. `element`: bytes of an element of a reduction, else not used. `gaps`: for an alltoall, whether a
/// datatype of this member has gaps.
OneNode* choose_one_node(CommEntry& entry, Collective what, std::int64_t bytes, std::int64_t element,
                         bool gaps) noexcept;

/// The communicator's OneNode for a blocking collective of which each member knows only the sizes of its own blocks
/// (MPI_Gatherv, MPI_Alltoallv and the like); nullptr: leave it to the MPI library. `bytes`: how many the call moves,
/// as far as this rank knows; may differ between members.
OneNode* choose_one_node(CommEntry& entry, Collective what, std::int64_t bytes) noexcept;

/// The bytes of CollectiveShape for a collective whose longest block has `longest` bytes: of all ranks' blocks, at most
/// 2^62.
inline std::int64_t whole_of(std::int64_t longest, int ranks) noexcept {
  constexpr std::int64_t bound = std::int64_t{1} << 62;
  return std::min(longest, bound / ranks) * ranks;
}

/// True if barriers are left to the MPI library; false also if the members have not agreed.
inline bool leaves_barriers(const CommEntry& entry) noexcept {
  const Job* const all = job();
  return entry.size() < 2 ||
         (all && may_share_memory(entry) && !collectives_of(entry).shares_always && !all->settings.one_node.barriers);
}
/// True if the limits leave all neighbor collectives of this form to the MPI library. A blocking one would also
/// prepare the others.
inline bool leaves_neighbors(const CommEntry& entry, bool blocking) noexcept {
  const Job* const all = job();
  if (!all || !may_share_memory(entry) || collectives_of(entry).shares_always) return false;
  const OneNodeLimits& limits = all->settings.one_node;
  return !limits.requests && !(blocking && limits.neighbors);
}
/// MPI_Barrier in shared memory. `known`: the communicator's entry, or nullptr. False: nothing was done; the call is
/// left to the MPI library.
bool barrier_on_one_node(MPI_Comm comm, CommEntry* known) noexcept;

/// True if blocking collectives of this kind count: some of them may go through shared memory. One that is left at
/// every size, as most of a library that was not measured are, needs no number. The same on all members.
inline bool counts(const CommEntry& entry, Collective what) noexcept {
  const Job* const all = job();
  return (all && all->settings.one_node.varying) || collectives_of(entry).sizes_of(what, CallForm::blocking).any();
}
/// True if a blocking collective has begun, and so is counted.
inline bool in_counted_call(const CommEntry& entry) noexcept {
  const OneNode* const node = collectives_of(entry).one_node.get();
  return node ? node->in_call() : collectives_of(entry).call_begun;
}
/// Counts a blocking collective that is left to the MPI library, among those that may go through a OneNode. Nothing is
/// counted before the members have agreed.
void count_left_collective(CommEntry& entry) noexcept;
/// Called before a blocking collective that is left to the MPI library, by an entry that forwards to `via`.
/// refused(entry): whether the library refuses the call, which then is not counted; asked about an intra-communicator
/// of two ranks or more.
template <Calls& via, class Refused>
void leave_to_library(MPI_Comm comm, Collective what, const Refused& refused) noexcept {
  CommEntry* const entry = job() ? runtime().comms.find(comm) : nullptr;
  if (entry && entry->size() >= 2 && !in_counted_call(*entry) && refused(*entry)) return;
  before_library_collective(comm);
  if (entry && !nested<via>() && counts(*entry, what)) count_left_collective(*entry);
}

/// True if blocks of this known type (operands.hpp) are not contiguous.
bool has_gaps(MPI_Datatype type) noexcept;

}  // namespace bestride::inline interpose
