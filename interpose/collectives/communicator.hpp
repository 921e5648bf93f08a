// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a communicator's collectives go through the hierarchy, and from which size on.
//
// The members agree on a message tag in calls that all of them make and that may wait: when the communicator is
// created, or in the first blocking collective that would go through the hierarchy. So at every later collective call,
// all members give the same answer to whether the communicator has a queue.
#include <mpi.h>

#include <cstdint>
#include <memory>

#include "interpose/collectives/comm_collectives.hpp"
#include "perfmodel/collective/choice.hpp"

namespace bestride::inline interpose {

class CollectiveQueue;

/// The agreement on a communicator that all members of another one create together. If all of these are on one node,
/// they agree through memory that they share, without messages: each says what the others need to know before it calls
/// the MPI library. That call returns on no member before all have made it, because they agree on a context there. So
/// after it, nobody has to wait. If not, the new communicator's members agree by messages after the call.
class ChildAgreement {
 public:
  /// Construct it before the call of the MPI library. `parent`: the communicator whose members make the call;
  /// MPI_COMM_NULL if it is made by others.
  explicit ChildAgreement(MPI_Comm parent, ChildRanks ranks = ChildRanks::any) noexcept;
  ChildAgreement(const ChildAgreement&) = delete;
  ChildAgreement& operator=(const ChildAgreement&) = delete;
  ~ChildAgreement();
  /// Call after the library's call, unless it has failed on this rank alone: others count this creation, too. Without
  /// it, as when an error handler throws, the number is given to the next creation.
  void count() noexcept { counted_ = true; }
  /// Call after the library has created `comm`, of which this rank is a member. Returns the entry of `comm`; nullptr:
  /// there is none.
  CommEntry* made(MPI_Comm comm) noexcept;

 private:
  const bool outermost_;
  const ChildRanks ranks_;
  CommEntry* parent_ = nullptr;  ///< nullptr: by messages
  std::uint32_t number_ = 0;     ///< of this creation among those of the parent
  bool counted_ = false;
  int record_ = -1;        ///< of this rank; used if it is rank 0
  void* entry_ = nullptr;  ///< memory for the new communicator's entry
};

/// The members agree, unless they have agreed before or there is nothing to agree on. Collective.
void agree_on_collectives(MPI_Comm comm, CommEntry& entry) noexcept;

/// Returns the communicator's queue if a collective of this size goes through it. nullptr: leave it to MPI. The answer
/// is the same on all members. `bytes`: the bytes of CollectiveShape. `blocking`: the call is blocking. `exact`: the
/// hierarchy and the library give the same bits. *choice: the whole choice.
CollectiveQueue* choose_queue(const CommCollectives& collectives, Collective what, std::int64_t bytes, bool blocking,
                              bool exact, CollectiveChoice* choice) noexcept;

/// Makes a queue for one persistent collective; its members agree on it in the initialization call. Members may start
/// their persistent collectives in any order and wait for any of them first, so each has its own queue. Each queue has
/// shared memory of its own, as much as a collective of `bytes` bytes (of CollectiveShape) needs, and the number of
/// queues is limited. Returns nullptr on all members if the collective is left to MPI, for example because some member
/// has too many queues. Collective.
std::shared_ptr<CollectiveQueue> make_persistent_queue(MPI_Comm comm, CommEntry& entry, std::int64_t bytes) noexcept;

}  // namespace bestride::inline interpose
