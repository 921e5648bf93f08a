// SPDX-License-Identifier: Apache-2.0
#pragma once
// OneNodeNeighbors: the blocking neighbour collectives of a communicator whose members are all on one node, through
// memory that they share.
//
// As for OneNode, some calls ask rank 0 whether they shall use memory. These calls wait for all members, which MPI
// allows of any collective; the others wait for neighbours only.
#include <mpi.h>

#include <memory>
#include <optional>
#include <utility>

#include "collectives/one_node/edges.hpp"
#include "interpose/collectives/comm_memory.hpp"
#include "interpose/collectives/neighbor_edges.hpp"
#include "interpose/objects/comm_registry.hpp"

namespace bestride::inline interpose {

class OneNodeNeighbors {
 public:
  /// `memory` has no record yet. `always`: it is used from the third call on. `calls_before`: that were left to the
  /// MPI library.
  OneNodeNeighbors(std::shared_ptr<CommMemory> memory, bool always, int calls_before) noexcept
      : memory_(std::move(memory)), asking_(always, calls_before) {}
  OneNodeNeighbors(const OneNodeNeighbors&) = delete;
  OneNodeNeighbors& operator=(const OneNodeNeighbors&) = delete;
  ~OneNodeNeighbors() {
    if (!has_memory()) memory_->add_left_calls(asking_.usage());
  }

  /// Called in each call by all members. True: the memory serves it. `bytes`: that this rank sends.
  bool serves(MPI_Comm comm, CommEntry& entry, NeighborForm form, std::int64_t bytes) noexcept {
    if (!decided_) decide(comm, entry, bytes);
    return has_memory() && found_.edges->serves(form);
  }
  bool has_memory() const noexcept { return part_ && part_->view(); }
  /// Calls have asked for memory in vain.
  bool refused() const noexcept { return decided_ && !has_memory(); }
  /// The next call is left to the MPI library whatever its arguments are. The same on all members.
  bool leaves_next() const noexcept { return !has_memory() && (decided_ || !asking_.asks_next()); }
  /// In such a call, instead of serves().
  void count_left(std::int64_t bytes) noexcept { asking_.count(bytes); }
  /// Carries out a call; waits for neighbours. Blocks in the order of the neighbours.
  void exchange(NeighborForm form, const Operands& input, const Operands& output) noexcept;

 private:
  void decide(MPI_Comm comm, CommEntry& entry, std::int64_t bytes) noexcept;

  const std::shared_ptr<CommMemory> memory_;
  AskingForMemory asking_;
  int question_ = 0;
  bool decided_ = false;
  FoundEdges found_;
  std::optional<CommPart<Edges, EdgesShape>> part_;
};

/// Says once what the user should know about an exchange. Any thread.
void report_exchange(bool copies_refused, bool truncated) noexcept;

/// The communicator's OneNodeNeighbors if a blocking neighbour collective goes through it; nullptr: leave it to the MPI
/// library. All members call this and get the same answer. `bytes`: that this rank sends.
OneNodeNeighbors* choose_one_node_neighbors(MPI_Comm comm, CommEntry& entry, NeighborForm form,
                                            std::int64_t bytes) noexcept;

}  // namespace bestride::inline interpose
