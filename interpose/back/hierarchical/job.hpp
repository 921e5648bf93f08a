// SPDX-License-Identifier: Apache-2.0
#pragma once
// Job: what hierarchical collectives need of the whole job, and what every rank has alike: the topology of MPI_COMM_WORLD, rank 0's
// settings and measurements, and one communicator of our own for all that crosses the wire.
//
// One communicator for all of them, with a tag for each of the application's: making one for each would run the application's
// attribute copy functions, and would have to wait inside of MPI_Iallgather.
#include <mpi.h>

#include "model/topology.hpp"
#include "perfmodel/collective_choice.hpp"

namespace bestride {

/// Rank 0's, handed to all: plain bytes.
struct JobSettings {
  CollectiveParameters parameters;
  std::int64_t window_limit = 0;  ///< bytes of a communicator's shared memory on one node
  std::int64_t cache_bytes = 0;   ///< of past allgathers on a node, of all communicators together; 0: nothing is kept
  std::int32_t reassociate = 0;   ///< BESTRIDE_REASSOCIATE
};

struct Job {
  const Topology& topology;  ///< of MPI_COMM_WORLD
  const JobSettings& settings;
  const CollectiveChooser& chooser;
  MPI_Comm wire;   ///< a duplicate of MPI_COMM_WORLD that only we use; errors on it are returned
  int largest_tag;
};

/// nullptr: no collective is hierarchical in this job, on all ranks alike. Any thread, once MPI_Init has returned.
const Job* job() noexcept;

/// Collective, in MPI_Init, where the topology of the world is known and has several nodes; else does nothing. `measured`: nullptr if there is no profile.
void join_job(const CollectiveMeasurements* measured) noexcept;
/// At MPI_Finalize: nothing is started from here on.
void leave_job() noexcept;

}  // namespace bestride
