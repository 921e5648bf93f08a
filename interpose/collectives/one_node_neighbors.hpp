// SPDX-License-Identifier: Apache-2.0
#pragma once
// OneNodeNeighbors: the blocking neighbour collectives of a communicator whose members are all on one node, through
// memory that they share.
//
// As for OneNode, the memory is made in the third call. That call waits for all members, which MPI allows of any
// collective; the others wait for neighbours only.
//
// If several edges join the same two ranks, the MPI library decides which block arrives where, and MPICH 4.0.2 decides
// differently in MPI_Neighbor_alltoall and in MPI_Neighbor_alltoallv. So each form is tried once with the numbers of
// the edges as data, and blocks follow the result.
#include <mpi.h>

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectives/one_node/edges.hpp"
#include "interpose/collectives/shared_window.hpp"
#include "interpose/objects/comm_registry.hpp"

namespace bestride::inline interpose {

enum class NeighborForm { alltoall, alltoallv, alltoallw };
inline constexpr int neighbor_forms = 3;

class OneNodeNeighbors {
 public:
  /// Collective over the members of `comm`. Returns nullptr on all members if there is no memory for it.
  static std::shared_ptr<OneNodeNeighbors> make(MPI_Comm comm, CommEntry& entry) noexcept;

  /// False on all members: a form of call that is left to the MPI library. MPICH 4.0.2 reads wrong arrays in
  /// MPI_Neighbor_alltoallw if the degrees of a rank differ.
  bool serves(NeighborForm form) const noexcept { return form != NeighborForm::alltoallw || equal_degrees_; }
  /// Carries out a call; waits for neighbours. Blocks in the order of the neighbours.
  void exchange(NeighborForm form, const Operands& input, const Operands& output) noexcept;

 private:
  /// Number of the edge for each incoming one, by form.
  using Incoming = std::array<std::vector<EdgeEnd>, neighbor_forms>;
  OneNodeNeighbors(SharedWindow window, const EdgesShape& shape, int rank, std::span<const EdgeEnd> out,
                   Incoming incoming, bool equal_degrees)
      : window_(std::move(window)),
        edges_(window_.data(), shape, rank, out, incoming[0].size()),
        in_(std::move(incoming)),
        equal_degrees_(equal_degrees) {}

  SharedWindow window_;
  Edges edges_;
  Incoming in_;
  bool equal_degrees_;
};

/// The communicator's OneNodeNeighbors if a blocking neighbour collective goes through it; nullptr: leave it to the MPI
/// library. All members call this and get the same answer.
OneNodeNeighbors* choose_one_node_neighbors(MPI_Comm comm, CommEntry& entry, NeighborForm form) noexcept;

}  // namespace bestride::inline interpose
