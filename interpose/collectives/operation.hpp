// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operation: one call of a collective that goes through the hierarchy or through the memory of one node, from its
// arguments to its end.
#include <mpi.h>

#include <atomic>
#include <new>

#include "collectives/cache/arena.hpp"
#include "collectives/cache/cache_table.hpp"
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/task.hpp"
#include "collectives/one_node/rounds.hpp"
#include "interpose/collectives/staged_blocks.hpp"

namespace bestride::inline interpose {

class NeighborQueue;

/// A communicator's cache of past allgathers.
struct CollectiveCache {
  CacheTable table;
  Arena arena;
};

/// The error class of a call that has ended with `outcome`, which is neither `left` nor `complete`.
inline int error_of(CallOutcome outcome) noexcept {
  return outcome == CallOutcome::truncated ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
}

/// One call of a collective that Bestride carries out. The object lives until `ended` is set; that of a persistent
/// collective is begun once for each start.
class Operation {
 public:
  virtual ~Operation() = default;
  /// Prepares the data that the operation reads. Called at each start, before begin(), by a thread that may call MPI.
  /// False: MPI could not pack the data; the operation then fails on all members.
  virtual bool fill() noexcept = 0;
  /// Returns the task of one start, between nodes. May throw std::bad_alloc.
  virtual Task begin(Hierarchy& hierarchy) = 0;
  /// Returns the task of one start if all members are on one node. The task of an operation that may be nonblocking
  /// calls no MPI function. Throws std::bad_alloc for operations that exist only between nodes.
  virtual Task begin(Rounds&) { throw std::bad_alloc(); }
  /// Returns the task of one start of a neighbor collective. Throws std::bad_alloc for all other operations.
  virtual Task begin(NeighborQueue&) { throw std::bad_alloc(); }
  /// True for a blocking call between nodes that goes to the MPI library if must_leave() is true on any member. The
  /// same on all members.
  virtual bool asks_members() const noexcept { return false; }
  virtual bool must_leave() const noexcept { return false; }
  /// Called after the task has ended, by a thread that may call MPI: the remaining work that is local to this rank.
  virtual void finish() noexcept {}

  /// Valid once it has ended.
  int error() const noexcept { return failed ? error_of(outcome) : MPI_SUCCESS; }

  /// The name of the strategy in the report; static text.
  virtual const char* variant() const noexcept { return "hierarchical"; }

  StagedBlocks staged;               ///< of the operands
  CollectiveCache* cache = nullptr;  ///< set before begin(); nullptr: nothing is kept
  MPI_Comm comm = MPI_COMM_NULL;     ///< the application's communicator, for errors
  int request_tag = -1;  ///< tag of the message that completes the application's request (requests.hpp); -1: the call
                         ///< itself waits
  Operation* next_ended = nullptr;  ///< used by its CollectiveQueue
  PipelineSettings pipeline;
  bool wants_full_memory = false;               ///< on one node, nonblocking: of its queue; the same on all members
  std::atomic<bool> ended{false};               ///< set last
  bool failed = false;                          ///< valid once it has ended
  CallOutcome outcome = CallOutcome::complete;  ///< valid once it has ended, if the members shared memory
};

}  // namespace bestride::inline interpose
