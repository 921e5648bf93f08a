// SPDX-License-Identifier: Apache-2.0
#pragma once
// Discovery: the topology of MPI_COMM_WORLD, asked of the MPI library and of each rank's host, once.
//
// Collective. Every rank comes to the same topology, or every rank to none: what later depends on it is decided alike by all. A rank
// that lacks memory, or to which MPI returns an error, takes part to the end and tells the others at the next agreement; so a failure
// on one rank costs all ranks the topology and never a hang.
// Here MPI enters the room; nothing else in model/ knows it. Compiled once per MPI ABI.
#include <optional>
#include <string>

#include "model/discover_calls.hpp"
#include "model/topology.hpp"

namespace bestride {

struct DiscoverRequest {
  bool wanted = false;       ///< discovered where it is wanted on at least one rank
  const char* file = "";     ///< path of a topology file, or ""; rank 0's counts and is read by rank 0 alone
  bool sound = true;         ///< false, for tests: this rank behaves as if it had no memory
};

struct Discovery {
  std::optional<Topology> topology;  ///< of MPI_COMM_WORLD; none: not wanted, or not known
  std::string trouble;               ///< on rank 0: what a person has to be told; else ""
  std::string processors;            ///< on rank 0: who said where it is bound, if not /sys alone; else ""
};

/// Over all ranks of MPI_COMM_WORLD, between MPI_Init and MPI_Finalize, while no other thread uses that communicator. Leaves nothing
/// behind in MPI. One agreement (MPI_Allreduce of an int) if no rank wants it. Of the file an error is `trouble`, and it is ignored.
Discovery discover(const DiscoverCalls& calls, const DiscoverRequest& request) noexcept;

}  // namespace bestride
