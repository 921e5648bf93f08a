// SPDX-License-Identifier: Apache-2.0
#pragma once
// Discovery: finds the topology of MPI_COMM_WORLD once, from the MPI library and from each rank's host.
//
// Collective. Either all ranks get the same topology or none gets one, so decisions that depend on it are the same on
// all ranks. A rank that runs out of memory or gets an MPI error still takes part in every collective and reports the
// error at the next agreement. So after a failure on one rank no rank has a topology, and no rank hangs. No other part
// of model/ uses MPI. Compiled once per MPI ABI.
#include <optional>
#include <string>

#include "model/discover_calls.hpp"
#include "model/topology.hpp"

namespace bestride::inline model {

struct DiscoverRequest {
  bool wanted = false;    ///< false: this rank knows that all ranks are on one host. Discovery runs if it is wanted on
                          ///< at least one rank; else the topology is one node
  const char* file = "";  ///< path of a topology file, or ""; only rank 0's value counts, and only rank 0 reads the
                          ///< file
  bool sound = true;      ///< false (for tests): this rank behaves as if it were out of memory
};

struct Discovery {
  std::optional<Topology> topology;  ///< of MPI_COMM_WORLD; none: not known
  std::string problem;               ///< on rank 0: a message for the user; else ""
  std::string processors;            ///< on rank 0: the source of its binding, if it is not /sys alone; else ""
};

/// Runs over all ranks of MPI_COMM_WORLD, between MPI_Init and MPI_Finalize, while no other thread uses that
/// communicator. Frees all MPI objects it made. If no rank wants it, it costs two MPI_Allreduce of an int. An error in
/// the file is reported in `problem`, and the file is ignored.
Discovery discover(const DiscoverCalls& calls, const DiscoverRequest& request) noexcept;

}  // namespace bestride::inline model
