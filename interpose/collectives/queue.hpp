// SPDX-License-Identifier: Apache-2.0
#pragma once
// CollectiveQueue: the hierarchical collectives of one communicator, or one persistent collective. They run one after
// the other.
//
// All members construct it alike, after they have agreed on a tag. The first operation creates its shared memory and
// its Hierarchy, with messages and in steps as all other work, so a nonblocking call does not wait for them. If shared
// memory fails on a node, the members inform each other; operations that are already queued use the network, with each
// rank as a node of its own, and later calls are left to MPI.
#include <mpi.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

#include "collectives/core/hierarchy.hpp"
#include "collectives/core/task.hpp"
#include "collectives/core/window.hpp"
#include "interpose/collectives/cache_share.hpp"
#include "interpose/collectives/mpi_transport.hpp"
#include "interpose/collectives/operation.hpp"
#include "interpose/collectives/pending.hpp"

namespace bestride::inline interpose {

class CollectiveQueue : public std::enable_shared_from_this<CollectiveQueue> {
 public:
  static constexpr std::int64_t max_slot_bytes = 1 << 20;  ///< of a channel
  /// May throw std::bad_alloc. `window_limit`: bytes of shared memory on a node. `most_bytes`: the largest size of an
  /// operation, which limits the size of the shared memory.
  CollectiveQueue(Topology topology, int rank, MPI_Comm private_comm, std::vector<int> world_ranks,
                  std::int64_t window_limit, std::int64_t most_bytes);
  /// Called once, before anything is added.
  void set_tags(int pair) noexcept { transport_.set_tags(pair); }
  /// Same arguments on all members; called once, before anything is added. Without a budget nothing is kept.
  void set_cache(const CacheLimits& limits, CacheShare share) noexcept {
    cache_limits_ = limits;
    cache_share_ = std::move(share);
  }
  const CacheLimits& cache() const noexcept { return cache_limits_; }
  /// Keeps a reference to `counter`. The owner of `counter` counts its queues by these references.
  void count_in(std::shared_ptr<char> counter) noexcept { counter_ = std::move(counter); }

  const Topology& topology() const noexcept { return topology_; }
  /// True on all members if shared memory failed on some node: leave the call to MPI.
  bool failed() const noexcept { return shared_memory_failed_; }

  /// Appends an operation, which must live until it has ended. False: there is no memory, which is reported once;
  /// nothing has happened.
  bool add(Operation& operation) noexcept;
  /// Advances the queued operations as far as possible without waiting. False: nothing is left. Returns at once if
  /// another thread is doing it.
  bool step() noexcept;
  /// Completes an added operation, and all before it. True: it succeeded.
  bool run(Operation& operation) noexcept;
  /// Lets the MPI library make progress.
  void poll() noexcept { transport_.poll(); }
  /// Runs until nothing is left.
  void finish() noexcept;

 private:
  Task make_hierarchy();
  void step_locked() noexcept;
  void end_first(bool good) noexcept;

  const Topology topology_;
  const int rank_;
  const std::int64_t slot_bytes_;
  MpiTransport transport_;
  std::mutex mutex_;
  std::deque<Operation*> operations_;
  Task current_;            ///< of the first operation, or of the setup that makes the hierarchy for it
  bool under_way_ = false;  ///< current_ runs
  bool making_ = false;     ///< current_ makes the hierarchy
  Window window_;
  Window arena_;  ///< of cache_
  CacheLimits cache_limits_;
  CacheShare cache_share_;
  std::shared_ptr<char> counter_;
  std::unique_ptr<CollectiveCache> cache_;
  CacheCounts noted_;  ///< counts of cache_ at the last record for the report
  std::unique_ptr<Hierarchy> hierarchy_;
  bool failed_ = false;                ///< as far as this rank knows
  bool shared_memory_failed_ = false;  ///< set at the end of a blocking collective, when all ranks know of the failure
};

}  // namespace bestride::inline interpose
