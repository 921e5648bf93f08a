// SPDX-License-Identifier: Apache-2.0
#pragma once
// A communicator's side of the hierarchical collectives: whether it has any, and from what size on.
//
// Its members agree on a tag in calls that all of them make and that may wait: where the communicator is made, or in the first blocking collective
// that would go through the hierarchy. So whether a communicator has a queue is known alike to all members at every collective call.
#include <mpi.h>

#include <atomic>
#include <memory>

#include "interpose/back/hierarchical/hints.hpp"
#include "interpose/back/hierarchical/job.hpp"
#include "perfmodel/collective_choice.hpp"

namespace bestride {

class CommEntry;
class CollectiveQueue;

class CommCollectives {
 public:
  CommCollectives() = default;
  ~CommCollectives();
  CommCollectives(const CommCollectives&) = delete;
  CommCollectives& operator=(const CommCollectives&) = delete;

  /// The communicator's queue if a collective of this size is to go through it, else nullptr: leave it to MPI, in the form that *choice says. The same
  /// answer on all members, whose arguments are the same. `blocking`: the form of the call. `may_test`: as for CollectiveChooser.
  CollectiveQueue* choose(Collective what, std::int64_t bytes, bool blocking, bool may_test, CollectiveChoice* choice) noexcept;
  /// The members agree, if there is something to agree on and they have not yet. Collective.
  void agree(MPI_Comm comm, CommEntry& entry) noexcept;
  std::shared_ptr<CollectiveQueue> queue() const noexcept { return queue_; }

  CommHints hints;  ///< the same on all members
  bool remembered = true;  ///< false: known for the length of one call; nothing can be agreed on

 private:
  enum State : int { unasked, agreed };
  std::atomic<int> state_{unasked};
  std::shared_ptr<CollectiveQueue> queue_;  ///< nullptr: none, for good. Read once agreed.
  std::int64_t cache_share_ = 0;            ///< of this process's share of its node's cache
  CollectiveShape shape_;                   ///< of the communicator; call and bytes are filled in
  std::int64_t least_[collective_count][2]; ///< bytes below which the model leaves a call to MPI as it is, by collective and form
};

}  // namespace bestride
