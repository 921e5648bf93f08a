// SPDX-License-Identifier: Apache-2.0
#pragma once
// OneNodeNeighbors: the blocking neighbour collectives of a communicator whose members are all on one node, through
// memory that they share.
//
// As for OneNode, the memory is made in the third call. That call waits for all members, which MPI allows of any
// collective; the others wait for neighbours only.
#include <mpi.h>

#include <memory>
#include <utility>

#include "collectives/one_node/edges.hpp"
#include "interpose/collectives/neighbor_edges.hpp"
#include "interpose/collectives/shared_window.hpp"
#include "interpose/objects/comm_registry.hpp"

namespace bestride::inline interpose {

class OneNodeNeighbors {
 public:
  /// Collective over the members of `comm`. Returns nullptr on all members if there is no memory for it.
  static std::shared_ptr<OneNodeNeighbors> make(MPI_Comm comm, CommEntry& entry) noexcept;

  bool serves(NeighborForm form) const noexcept { return found_.serves(form); }
  /// Carries out a call; waits for neighbours. Blocks in the order of the neighbours.
  void exchange(NeighborForm form, const Operands& input, const Operands& output) noexcept;

 private:
  OneNodeNeighbors(SharedWindow window, const EdgesShape& shape, int rank, NeighborEdges found)
      : window_(std::move(window)),
        found_(std::move(found)),
        edges_(window_.data(), shape, rank, found_.out, found_.in[0].size()) {}

  SharedWindow window_;
  NeighborEdges found_;
  Edges edges_;
};

/// Says once what the user should know about an exchange. Any thread.
void report_exchange(bool copies_refused, bool truncated) noexcept;

/// The communicator's OneNodeNeighbors if a blocking neighbour collective goes through it; nullptr: leave it to the MPI
/// library. All members call this and get the same answer.
OneNodeNeighbors* choose_one_node_neighbors(MPI_Comm comm, CommEntry& entry, NeighborForm form) noexcept;

}  // namespace bestride::inline interpose
