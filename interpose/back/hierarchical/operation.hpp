// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operation: one call of a collective that goes through the hierarchy, from its arguments to its end.
#include <mpi.h>

#include <atomic>

#include "collectives/cache/arena.hpp"
#include "collectives/cache/cache_table.hpp"
#include "collectives/hierarchy.hpp"
#include "collectives/strand.hpp"
#include "interpose/back/hierarchical/staged_blocks.hpp"

namespace bestride {

/// What a communicator keeps of past allgathers.
struct CollectiveCache {
  CacheTable table;
  Arena arena;
};

/// Lives until it has ended; a persistent one is begun again and again.
class Operation {
 public:
  virtual ~Operation() = default;
  /// The work of one start. May throw std::bad_alloc.
  virtual Strand begin(Hierarchy& hierarchy) = 0;
  /// After the strand: what is left to do on this rank alone.
  virtual void finish() noexcept {}

  /// Once it has ended.
  int error() const noexcept { return failed ? MPI_ERR_OTHER : truncated ? MPI_ERR_TRUNCATE : MPI_SUCCESS; }

  /// For the report; static text.
  virtual const char* way() const noexcept { return "hierarchical"; }

  StagedBlocks staged;             ///< of the operands
  CollectiveCache* cache = nullptr;  ///< set before begin(); nullptr: nothing is kept
  MPI_Comm comm = MPI_COMM_NULL;   ///< the application's, for an error
  int request_tag = -1;            ///< of what completes the application's request (requests.hpp); -1: it waits in the call
  Pace pace;
  std::atomic<bool> ended{false};  ///< set last
  bool failed = false;             ///< valid once it has ended
  bool truncated = false;          ///< so is this: something was longer than its place here
};

}  // namespace bestride
