// SPDX-License-Identifier: Apache-2.0
#pragma once
// OneNodeQueue: the nonblocking collectives of a communicator whose members are all on one node, or one persistent
// collective of it, through memory that the members share.
//
// The first operation creates the memory, by a WindowOffer. Steps make no MPI call, so the progress thread may take
// them whatever thread level the application has asked for. If there is no memory, all operations go by messages, which
// this rank sends and receives in MPI calls only.
#include <mpi.h>

#include <atomic>
#include <memory>
#include <vector>

#include "collectives/core/hierarchy.hpp"
#include "collectives/core/window.hpp"
#include "collectives/one_node/rounds.hpp"
#include "interpose/collectives/queue.hpp"
#include "interpose/collectives/window_offers.hpp"

namespace bestride::inline interpose {

class OneNodeQueue final : public CollectiveQueue {
 public:
  /// May throw std::bad_alloc. `offers` lives until the process ends. `most_in_use`: limit of bytes_in_use() on rank 0;
  /// if the memory of this queue would exceed it, there is none.
  OneNodeQueue(int ranks, int rank, RoundsShape shape, std::int64_t most_in_use, MPI_Comm private_comm,
               std::vector<int> world_ranks, WindowOffers& offers);
  /// Called once, before anything is added. On rank 0 the queue owns the offer.
  void set_offer(int index) noexcept { offer_ = index; }
  ~OneNodeQueue() override;
  /// Bytes of shared memory that all queues of this process have.
  static std::int64_t bytes_in_use() noexcept { return bytes_in_use_.load(std::memory_order_relaxed); }
  /// Bytes of shared memory that this queue has or will have.
  std::int64_t bytes() const noexcept { return static_cast<std::int64_t>(shape_.bytes()); }
  const char* variant() const noexcept override { return "one node"; }

 private:
  Task make() override;
  bool made() const noexcept override { return rounds_ || without_memory_; }
  Task begin(Operation& operation) override {
    return rounds_ ? operation.begin(*rounds_) : operation.begin(*without_memory_);
  }
  bool calls_mpi() const noexcept override { return without_memory_ != nullptr; }

  const int ranks_, rank_;
  const RoundsShape shape_;
  WindowOffers& offers_;
  static std::atomic<std::int64_t> bytes_in_use_;
  const std::int64_t most_in_use_;
  int offer_ = -1;
  Window window_;
  std::unique_ptr<Rounds> rounds_;
  std::unique_ptr<Hierarchy> without_memory_;  ///< each rank on a node of its own
};

}  // namespace bestride::inline interpose
