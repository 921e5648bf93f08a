// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where the ranks of a measuring job run. Collectives are called by the library's own PMPI_ names, so that a preload
// library does not intercept them.
#include <mpi.h>

#include <algorithm>

#include "model/topology.hpp"

namespace bestride::inline perfmodel {

struct JobTopology {
  MPI_Comm node = MPI_COMM_NULL;  ///< the ranks of this rank's node
  int rank = 0;                   ///< in MPI_COMM_WORLD
  Topology topology;              ///< of MPI_COMM_WORLD

  int my_node() const noexcept { return topology.node_of(rank); }
  int my_local_rank() const noexcept { return topology.local_rank_of(rank); }
  /// Number of ranks on each of the first two nodes that have a counterpart on the other one. Needs at least two nodes.
  int lanes_across() const noexcept {
    return static_cast<int>(std::min(topology.ranks_on(0).size(), topology.ranks_on(1).size()));
  }
  /// The counterpart of this rank on the other node, if this rank is one of the first `streams` of the first or second
  /// node; else -1.
  int across(int streams) const noexcept;
};

/// Collective over MPI_COMM_WORLD. The communicator lives until MPI_Finalize.
JobTopology find_job_topology();

/// A barrier over all ranks of MPI_COMM_WORLD. Waiting ranks yield their processor. With MPI's own barrier, some ranks
/// start up to a scheduler time slice earlier than ranks that still wait for a processor, and the measurement would
/// include this. `idle`: this rank is not measured while the others are; it sleeps, to leave them its processor.
void yielding_barrier(bool idle = false);
/// The largest value over all ranks of MPI_COMM_WORLD; waits in the same way.
double largest_of_all_ranks(double value);
/// Yields the processor to ranks that are not waiting.
void yield_processor();
/// Waits in the same way until all requests are complete.
void wait_all(int count, MPI_Request* requests);

}  // namespace bestride::inline perfmodel
