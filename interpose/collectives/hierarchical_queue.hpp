// SPDX-License-Identifier: Apache-2.0
#pragma once
// HierarchicalQueue: the collectives of a communicator with members on several nodes.
//
// The first operation creates its shared memory and its Hierarchy, with messages. If shared memory fails on a node, the
// members inform each other; operations that are already queued use the network, with each rank as a node of its own,
// and later calls are left to MPI.
#include <mpi.h>

#include <memory>
#include <utility>
#include <vector>

#include "collectives/core/hierarchy.hpp"
#include "collectives/core/window.hpp"
#include "interpose/collectives/cache_share.hpp"
#include "interpose/collectives/queue.hpp"

namespace bestride::inline interpose {

class HierarchicalQueue final : public CollectiveQueue {
 public:
  static constexpr std::int64_t max_slot_bytes = 1 << 20;  ///< of a channel
  /// May throw std::bad_alloc. `window_limit`: bytes of shared memory on a node. `most_bytes`: the largest size of an
  /// operation, which limits the size of the shared memory.
  HierarchicalQueue(Topology topology, int rank, MPI_Comm private_comm, std::vector<int> world_ranks,
                    std::int64_t window_limit, std::int64_t most_bytes);
  /// Same arguments on all members; called once, before anything is added. Without a budget nothing is kept.
  void set_cache(const CacheLimits& limits, CacheShare share) noexcept {
    cache_limits_ = limits;
    cache_share_ = std::move(share);
  }
  const CacheLimits& cache() const noexcept { return cache_limits_; }
  const Topology& topology() const noexcept { return topology_; }

 private:
  Task make() override;
  bool made() const noexcept override { return hierarchy_ != nullptr; }
  Task begin(Operation& operation) override;
  void note_end(Operation&) noexcept override;

  const Topology topology_;
  const int rank_;
  const std::int64_t slot_bytes_;
  Window window_;
  Window arena_;  ///< of cache_
  CacheLimits cache_limits_;
  CacheShare cache_share_;
  std::unique_ptr<CollectiveCache> cache_;
  CacheCounts noted_;  ///< counts of cache_ at the last record for the report
  std::unique_ptr<Hierarchy> hierarchy_;
};

/// Each rank on a node of its own: for a hierarchy without shared memory. May throw std::bad_alloc.
Topology all_apart(int ranks);

}  // namespace bestride::inline interpose
