// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which ranks of MPI_COMM_WORLD are on this host, according to the launcher's environment variables.
//
// There is no communication: a collective of ours inside MPI_Init would hang a job in which only some ranks have the
// preload (one rank under a debugger, an MPMD start). Launchers tell the number of ranks on this host and the local
// rank of this one. The other local ranks are assumed to be its neighbors in rank order, unless the launcher says that
// ranks are distributed cyclically. A wrong guess makes a choice slower but never a result wrong. Alternative
// considered: MPI_Comm_split_type(MPI_COMM_TYPE_SHARED) in MPI_Init, which is exact but collective.
#include "model/distance.hpp"

namespace bestride::inline interpose {

struct Locality {
  int rank = 0;  ///< in MPI_COMM_WORLD
  int ranks = 1;
  int local_rank = 0;
  int local_ranks = 0;  ///< ranks on this host; 0: unknown
  bool dealt = false;   ///< ranks are distributed over the hosts cyclically

  /// True if all ranks are on this host.
  bool one_host() const noexcept { return local_ranks == ranks || ranks == 1; }
  Distance to(int world_rank) const noexcept;

  static Locality from_environment(int rank, int ranks) noexcept;
};

/// Number of ranks of the job, from the launcher; 0: unknown. May be called before MPI_Init.
int ranks_of_job() noexcept;
/// True if the launcher says that all ranks are on this host. May be called before MPI_Init.
bool launched_on_one_host() noexcept;
/// True if MPICH's own test variables make it treat one host as several nodes.
bool simulated_nodes() noexcept;

}  // namespace bestride::inline interpose
