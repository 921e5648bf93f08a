// SPDX-License-Identifier: Apache-2.0
#pragma once
// OneNodeQueue: the nonblocking collectives of a communicator whose members are all on one node, or one persistent
// collective of it, through memory that the members share.
//
// The memory is created by a WindowOffer: by the first nonblocking operation, or in the initialisation of a persistent
// collective, which may wait. Steps make no MPI call, so the progress thread may take them whatever thread level the
// application has asked for. If there is no memory, nonblocking operations go by messages, which this rank sends and
// receives in MPI calls only, and persistent collectives are left to the MPI library: members may start them in any
// order, so none can be completed before a blocking collective of the library, in which this rank would not step.
#include <mpi.h>

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
  /// May throw std::bad_alloc. `offers`, `limit`: as for OfferedWindow.
  OneNodeQueue(WindowMember member, RoundsShape shape, std::int64_t limit, MPI_Comm private_comm,
               std::vector<int> world_ranks, WindowOffers& offers);
  OfferedWindow& window() noexcept { return window_; }
  const char* variant() const noexcept override { return "one node"; }

 private:
  Task share_memory() override;
  Task make() override;
  bool made() const noexcept override { return rounds_ || without_memory_; }
  Task begin(Operation& operation) override {
    if (!rounds_) return operation.begin(*without_memory_);
    rounds_->open();
    return operation.begin(*rounds_);
  }
  void note_end(Operation& operation) noexcept override {
    if (!rounds_) return;
    operation.outcome = rounds_->close();
    operation.failed |= operation.outcome != CallOutcome::complete;
  }
  bool calls_mpi() const noexcept override { return without_memory_ != nullptr; }

  const WindowMember member_;
  const RoundsShape shape_;
  OfferedWindow window_;
  std::unique_ptr<Rounds> rounds_;
  std::unique_ptr<Hierarchy> without_memory_;  ///< each rank on a node of its own
};

}  // namespace bestride::inline interpose
