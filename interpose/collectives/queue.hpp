// SPDX-License-Identifier: Apache-2.0
#pragma once
// CollectiveQueue: the collectives of one communicator that Bestride carries out, or one persistent collective. They
// run one after the other.
//
// All members construct it alike, after they have agreed on a tag. The first operation creates what they need, in steps
// as all other work, so a nonblocking call does not wait for it. A queue is either a HierarchicalQueue or a
// OneNodeQueue.
#include <mpi.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <new>

#include "collectives/core/task.hpp"
#include "interpose/collectives/mpi_transport.hpp"
#include "interpose/collectives/operation.hpp"
#include "interpose/collectives/pending.hpp"

namespace bestride::inline interpose {

class CollectiveQueue : public std::enable_shared_from_this<CollectiveQueue> {
 public:
  virtual ~CollectiveQueue() = default;
  /// Called once, before anything is added.
  void set_tags(int pair) noexcept { transport_.set_tags(pair); }
  /// Keeps a reference to `counter`. The owner of `counter` counts its queues by these references.
  void count_in(std::shared_ptr<char> counter) noexcept { counter_ = std::move(counter); }
  /// True on all members if shared memory failed on some node: leave the call to MPI.
  bool failed() const noexcept { return shared_memory_failed_; }
  /// The name of the strategy in the report; static text. nullptr: it depends on the operation.
  virtual const char* variant() const noexcept { return nullptr; }

  /// Creates the memory of a queue of one node now, before anything is added; waits for the other members. False on all
  /// members: there is no memory, which is reported once.
  bool share_memory_now() noexcept;
  /// Appends an operation, which must live until it has ended. False: there is no memory, which is reported once;
  /// nothing has happened. Called by a thread that may call MPI.
  bool add(Operation& operation) noexcept;
  /// Advances the queued operations as far as possible without waiting. False: nothing is left. Returns at once if
  /// another thread is doing it. `may_call_mpi`: this thread may call MPI functions; if not, operations end, but they
  /// are completed only by a later call.
  bool step(bool may_call_mpi = true) noexcept;
  /// Completes an added operation, and all before it. True: it succeeded.
  bool run(Operation& operation) noexcept;
  /// Lets the MPI library make progress.
  void poll() noexcept { transport_.poll(); }
  /// Runs until nothing is left.
  void finish() noexcept;

 protected:
  CollectiveQueue(MPI_Comm private_comm, std::vector<int> world_ranks)
      : transport_(private_comm, std::move(world_ranks)) {}

  /// Creates what operations need; is run until ready_for() is true. May throw std::bad_alloc.
  virtual Task make() = 0;
  virtual bool made() const noexcept = 0;
  /// False: make() runs (again) before this operation. The same on all members.
  virtual bool ready_for(const Operation&) const noexcept { return made(); }
  /// Returns the task of an operation. May throw std::bad_alloc.
  virtual Task begin(Operation& operation) = 0;
  /// The part of make() that creates memory on one node. Calls no MPI function. May throw std::bad_alloc.
  virtual Task share_memory() { throw std::bad_alloc(); }
  /// True if a step of a task may call MPI functions.
  virtual bool calls_mpi() const noexcept { return true; }
  /// Called when an operation has ended. May set its outcome, and that it has failed.
  virtual void note_end(Operation&) noexcept {}

  MpiTransport transport_;
  bool failed_ = false;  ///< as far as this rank knows: shared memory has failed on some node

 private:
  void step_locked(bool may_call_mpi) noexcept;
  void end_first(bool good) noexcept;
  void complete_ended() noexcept;

  std::mutex mutex_;
  std::deque<Operation*> operations_;
  Operation* first_ended_ = nullptr;  ///< operations that have ended, but are not completed; a list in their order
  Operation** last_ended_ = &first_ended_;
  Task current_;            ///< of the first operation, or make()
  bool under_way_ = false;  ///< current_ runs
  bool making_ = false;     ///< current_ is make()
  std::shared_ptr<char> counter_;
  bool shared_memory_failed_ = false;  ///< set at the end of a blocking collective, when all ranks know of the failure
};

}  // namespace bestride::inline interpose
