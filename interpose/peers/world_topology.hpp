// SPDX-License-Identifier: Apache-2.0
#pragma once
// The topology of MPI_COMM_WORLD: discovered once, at the end of MPI_Init, and the same on all ranks.
//
// Discovery is collective, so it happens only if all ranks take part (BESTRIDE_ALL_RANKS).
#include "interpose/peers/locality.hpp"
#include "model/topology.hpp"

namespace bestride::inline interpose {

/// The topology of MPI_COMM_WORLD; nullptr: unknown, on every rank alike; then whatever needs it is left to the MPI
/// library. Valid until the process ends. May be called from any thread once MPI_Init has returned.
const Topology* world_topology() noexcept;

/// Collective over MPI_COMM_WORLD if `all_ranks`; otherwise does nothing. Called once, from MPI_Init, after the
/// library's own MPI_Init has succeeded. The topology is discovered if some rank does not know from its launcher that
/// all ranks are on one host, or if the user provides a topology file, or if MPICH is told to pretend that there are
/// several nodes.
void learn_world_topology(const Locality& locality, bool all_ranks) noexcept;

}  // namespace bestride::inline interpose
