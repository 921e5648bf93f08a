// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the ranks of a measuring job run. All calls by their PMPI_ names: a preloaded library must not see them.
#include <mpi.h>

#include <algorithm>

#include "model/topology.hpp"

namespace bestride {

struct JobPlace {
  MPI_Comm node = MPI_COMM_NULL;  ///< the ranks of this rank's node
  int rank = 0;                   ///< in MPI_COMM_WORLD
  Topology topology;              ///< of MPI_COMM_WORLD

  int my_node() const noexcept { return topology.node_of(rank); }
  int my_local_rank() const noexcept { return topology.local_rank_of(rank); }
  /// Ranks of each of the first two nodes that have one across. At least two nodes.
  int lanes_across() const noexcept { return static_cast<int>(std::min(topology.ranks_on(0).size(), topology.ranks_on(1).size())); }
  /// The rank across, where this rank is one of the first `streams` of the first or second node; else -1.
  int across(int streams) const noexcept;
};

/// Collective over MPI_COMM_WORLD. The communicator lives until MPI_Finalize.
JobPlace find_place();

/// Waits for all ranks of MPI_COMM_WORLD. Who waits leaves its processor to ranks that don't: with MPI's own barrier those that are through
/// start earlier than those that wait for a processor, by as much as a scheduler's turn takes, and that would be measured.
/// `looks_on`: the others are measured meanwhile. It sleeps, and takes no processor from them.
void meet(bool looks_on = false);
/// Over all ranks of MPI_COMM_WORLD, waiting likewise.
double largest(double value);
/// To ranks that don't wait.
void leave_processor();
/// Until all of them are complete, likewise.
void finish(int count, MPI_Request* requests);

}  // namespace bestride
