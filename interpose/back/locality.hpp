// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which ranks of MPI_COMM_WORLD are on this host, from what the launcher put into the environment.
//
// No communication: a collective of ours inside MPI_Init would hang a job in which only some ranks have the preload (one rank
// under a debugger, an MPMD start), and no gain is worth that. The launchers say how many ranks are here and which of them this
// one is; that the others are its neighbours in rank order is assumed unless the launcher says they are dealt in turn. A wrong
// guess makes a choice slower, never a result wrong.
// Alternative that lost: MPI_Comm_split_type(MPI_COMM_TYPE_SHARED) at MPI_Init, exact and collective.
#include "model/distance.hpp"

namespace bestride {

struct Locality {
  int rank = 0;        ///< in MPI_COMM_WORLD
  int ranks = 1;
  int local_rank = 0;
  int local_ranks = 0;  ///< ranks on this host; 0: not known
  bool dealt = false;   ///< ranks go round the hosts in turn

  /// All ranks are here.
  bool one_host() const noexcept { return local_ranks == ranks || ranks == 1; }
  Distance to(int world_rank) const noexcept;

  static Locality from_environment(int rank, int ranks) noexcept;
};

}  // namespace bestride
