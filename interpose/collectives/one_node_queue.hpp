// SPDX-License-Identifier: Apache-2.0
#pragma once
// OneNodeQueue: the nonblocking collectives of a communicator whose members are all on one node, or one persistent
// collective of it, through memory that the members share.
//
// The first nonblocking operation, or the initialization of a persistent collective, which may wait, asks for the
// memory. Steps make no MPI call, so the progress thread may take them whatever thread level the application has asked
// for. If there is no memory, nonblocking operations go by messages, which this rank sends and receives in MPI calls
// only, and persistent collectives are left to the MPI library: members may start them in any order, so none can be
// completed before a blocking collective of the library, in which this rank would not step.
#include <mpi.h>

#include <memory>
#include <optional>
#include <vector>

#include "collectives/core/hierarchy.hpp"
#include "collectives/one_node/rounds.hpp"
#include "interpose/collectives/comm_memory.hpp"
#include "interpose/collectives/queue.hpp"

namespace bestride::inline interpose {

class OneNodeQueue final : public CollectiveQueue {
 public:
  /// May throw std::bad_alloc. `memory` gets its record before the first operation. `full`: shape of the largest
  /// memory. `always`: it is asked for at once.
  OneNodeQueue(std::shared_ptr<CommMemory> memory, const RoundsShape& full, bool always, MPI_Comm private_comm,
               std::vector<int> world_ranks);
  const char* variant() const noexcept override { return "one node"; }

 private:
  Task ask(NewMemory wanted);
  Task share_memory() override { return ask(NewMemory::full); }
  Task make() override;
  bool made() const noexcept override { return rounds() || without_memory_; }
  bool ready_for(const Operation& operation) const noexcept override {
    return without_memory_ || (rounds() && (!operation.wants_full_memory || asked_for_full_));
  }
  Task begin(Operation& operation) override {
    Rounds* const rounds_now = rounds();
    if (!rounds_now) return operation.begin(*without_memory_);
    rounds_now->open();
    return operation.begin(*rounds_now);
  }
  void note_end(Operation& operation) noexcept override {
    if (!rounds()) return;
    operation.outcome = rounds()->close();
    operation.failed |= operation.outcome != CallOutcome::complete;
  }
  bool calls_mpi() const noexcept override { return without_memory_ != nullptr; }
  Rounds* rounds() const noexcept { return part_ ? part_->view() : nullptr; }

  const std::shared_ptr<CommMemory> memory_;
  const RoundsShape full_;
  std::optional<CommPart<Rounds, RoundsShape>> part_;
  bool asked_for_full_;
  const bool always_;
  std::unique_ptr<Hierarchy> without_memory_;  ///< each rank on a node of its own
};

}  // namespace bestride::inline interpose
