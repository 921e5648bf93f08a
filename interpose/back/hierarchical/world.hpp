// SPDX-License-Identifier: Apache-2.0
#pragma once
// The topology of MPI_COMM_WORLD: learnt once, at the end of MPI_Init, and the same on all ranks.
//
// Learning it is collective, so it happens only where the user says that every rank has the preload (BESTRIDE_EVERYWHERE=1).
#include "interpose/back/locality.hpp"
#include "model/topology.hpp"

namespace bestride {

/// nullptr: not known, on every rank alike; then whatever needs it is left to the MPI library. Valid until the process ends. Any thread,
/// once MPI_Init has returned.
const Topology* world_topology() noexcept;

/// Collective over MPI_COMM_WORLD if `everywhere`, else does nothing. Once, from MPI_Init, after the library's own has succeeded.
/// Learnt if some rank does not know from its launcher that all ranks are on one host, or the user brings a topology of his own, or tells
/// MPICH to pretend that there are several nodes.
void learn_world_topology(const Locality& locality, bool everywhere) noexcept;

}  // namespace bestride
