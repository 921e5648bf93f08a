// SPDX-License-Identifier: Apache-2.0
#pragma once
// NeighborEdges: the edges of a communicator's virtual topology, numbered alike on all members.
//
// If several edges join the same two ranks, the MPI library decides which block arrives where
// (quirks::order_of_parallel_edges_differs). So each form is tried once with the numbers of the edges as data, and
// blocks follow the result.
#include <mpi.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/one_node/edges.hpp"
#include "interpose/collectives/comm_collectives.hpp"
#include "interpose/mpi/quirks.hpp"

namespace bestride::inline interpose {

enum class NeighborForm { alltoall, alltoallv, alltoallw };
inline constexpr int neighbor_forms = 3;
struct NeighborEdges {
  std::vector<EdgeEnd> out;                             ///< of which this rank is the source
  std::array<std::vector<EdgeEnd>, neighbor_forms> in;  ///< of which it is the destination, in the order of the blocks
  bool equal_degrees = true;                            ///< each rank has as many incoming edges as outgoing ones

  /// False on all members: a form of call that is left to the MPI library.
  bool serves(NeighborForm form) const noexcept {
    return !quirks::neighbor_alltoallw_exchanges_degrees || form != NeighborForm::alltoallw || equal_degrees;
  }
  std::span<const EdgeEnd> incoming(NeighborForm form) const noexcept { return in[static_cast<std::size_t>(form)]; }
};

/// What find_edges() has found; the same on all members, except for the edges of this member.
struct FoundEdges {
  EdgesShape shape;
  std::shared_ptr<const NeighborEdges> edges;  ///< null: neighbor collectives are left to MPI
};
/// Finds the edges of the virtual topology of `comm`. Collective over its members. `calls`: the form of the calls that
/// the edges are for. `limit`: the most bytes of shared memory for them.
FoundEdges find_edges(MPI_Comm comm, CommEntry& entry, CallForm calls, std::int64_t limit) noexcept;

/// What find_edges() has found before for a Cartesian grid of the same ranks in the same order, which all of them know
/// then. Calls no function that waits. `among`: the first so many grids that this rank knows. With the number of grids
/// when the communicator was created, the answer is the same on all members in any later call; with all grids, in a
/// call that waits.
FoundEdges known_edges(MPI_Comm comm, CommEntry& entry, CallForm calls, std::size_t among = SIZE_MAX) noexcept;
/// True if the edges that find_edges() finds are known afterwards, unless too many are.
bool remembers_edges(MPI_Comm comm) noexcept;
/// How many grids this rank knows.
std::size_t known_grid_count() noexcept;

}  // namespace bestride::inline interpose
