// SPDX-License-Identifier: Apache-2.0
#pragma once
// OneNodeNeighbors: the blocking neighbor collectives of a communicator whose members are all on one node, through
// memory that they share.
//
// Some calls ask rank 0 for memory (comm_memory.hpp). They wait for all members, which MPI allows of any collective;
// the others wait for neighbors only.
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
  /// `memory` has no record yet. `always`: the third call asks for memory of the full size, however few bytes the
  /// calls have moved.
  /// `calls_before`: how many calls of the communicator were left to the MPI library before.
  OneNodeNeighbors(std::shared_ptr<CommMemory> memory, bool always, int calls_before) noexcept
      : memory_(std::move(memory)), asking_(always, calls_before) {}
  OneNodeNeighbors(const OneNodeNeighbors&) = delete;
  OneNodeNeighbors& operator=(const OneNodeNeighbors&) = delete;
  ~OneNodeNeighbors() {
    if (!has_memory()) memory_->add_left_calls(asking_.usage());
  }

  /// Called in each call by all members. `bytes`: how many this rank sends. True: the call goes through the memory.
  bool serves(MPI_Comm comm, CommEntry& entry, NeighborForm form, std::int64_t bytes) noexcept {
    if (!decided_) decide(comm, entry, bytes);
    return has_memory() && found_.edges->serves(form);
  }
  bool has_memory() const noexcept { return part_ && part_->view(); }
  /// Calls have asked for memory in vain.
  bool refused() const noexcept { return decided_ && !has_memory(); }
  /// The next call is left to the MPI library whatever its arguments are. The same on all members.
  bool leaves_next() const noexcept { return !has_memory() && (decided_ || !asking_.asks_next()); }
  /// Called in place of serves() in a call for which leaves_next() was true.
  void count_left(std::int64_t bytes) noexcept { asking_.count(bytes); }
  /// Carries out a call; waits for neighbors. Block i of `input` and `output` is that of neighbor i.
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

/// The communicator's OneNodeNeighbors if a blocking neighbor collective goes through it; nullptr: leave it to the MPI
/// library. All members call this and get the same answer. `bytes`: that this rank sends.
OneNodeNeighbors* choose_one_node_neighbors(MPI_Comm comm, CommEntry& entry, NeighborForm form,
                                            std::int64_t bytes) noexcept;

}  // namespace bestride::inline interpose
