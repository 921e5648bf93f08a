// SPDX-License-Identifier: Apache-2.0
#pragma once
// CollectiveQueue: the hierarchical collectives of one communicator, carried on one after the other.
//
// Made by all members alike, where they have agreed on a tag. Its shared memory and its Hierarchy are made by the first operation, over the
// wire, in steps like everything else, so that a nonblocking call need not wait for them. Where a node's shared memory fails, the
// members tell each other; what is queued by then goes over the wire with each rank as a node of its own, and later calls are left to MPI.
#include <mpi.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

#include "collectives/hierarchy.hpp"
#include "collectives/strand.hpp"
#include "collectives/window.hpp"
#include "interpose/back/hierarchical/mpi_transport.hpp"
#include "interpose/back/hierarchical/operation.hpp"
#include "interpose/back/hierarchical/pending.hpp"

namespace bestride {

class CollectiveQueue : public std::enable_shared_from_this<CollectiveQueue> {
 public:
  /// May throw std::bad_alloc. `window_limit`: bytes of shared memory on a node.
  CollectiveQueue(Topology topology, int rank, MPI_Comm wire, std::vector<int> world_ranks, std::int64_t window_limit);
  /// Once, before anything is added.
  void set_tags(int pair) noexcept { wire_.set_tags(pair); }
  /// The same on all members; once, before anything is added. No budget: nothing is kept.
  void set_cache(const CacheLimits& limits) noexcept { cache_limits_ = limits; }
  const CacheLimits& cache() const noexcept { return cache_limits_; }

  const Topology& topology() const noexcept { return topology_; }
  /// All members know, and alike, that shared memory failed somewhere: leave it to MPI.
  bool refused() const noexcept { return refused_known_; }

  /// Puts an operation behind the others. It lives until it has ended. False: there is no memory, which is said once; nothing has happened.
  bool add(Operation& operation) noexcept;
  /// Carries on what is queued as far as possible without waiting. False: nothing is left. Returns at once if another thread is at it.
  bool step() noexcept;
  /// Carries an operation that was added to its end, and all before it. True: it ended well.
  bool run(Operation& operation) noexcept;
  /// Carries on until nothing is left.
  void finish() noexcept;

 private:
  Strand make_hierarchy();
  void step_locked() noexcept;
  void end_first(bool good) noexcept;

  const Topology topology_;
  const int rank_;
  const std::int64_t slot_bytes_;
  MpiTransport wire_;
  std::mutex mutex_;
  std::deque<Operation*> operations_;
  Strand current_;           ///< of the first operation, or what makes the hierarchy for it
  bool under_way_ = false;   ///< current_ is
  bool making_ = false;      ///< current_ makes the hierarchy
  Window window_;
  Window arena_;  ///< of cache_
  CacheLimits cache_limits_;
  std::unique_ptr<CollectiveCache> cache_;
  CacheCounts noted_;  ///< of cache_, for the report
  std::unique_ptr<Hierarchy> hierarchy_;
  bool refused_ = false;        ///< as far as this rank knows
  bool refused_known_ = false;  ///< since a blocking collective has ended here: so by now on all ranks
};

}  // namespace bestride
