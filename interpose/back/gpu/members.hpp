// SPDX-License-Identifier: Apache-2.0
#pragma once
// Who takes part in a collective, and as what.
#include <mpi.h>

#include "interpose/back/calls.hpp"

namespace bestride {

struct Members {
  bool known = false;  ///< false: no valid communicator; MPI says so
  bool inter = false;
  int rank = 0;
  int size = 0;   ///< of the own group
  int peers = 0;  ///< blocks a direction has that names one for each rank: the size of the other group, where there is one

  /// The calling rank is the one to whom the root's arguments matter.
  bool is_root(int root) const noexcept { return inter ? root == MPI_ROOT : rank == root; }
  /// It has data of its own to give to the root, or to get from it.
  bool has_part(int root) const noexcept { return !inter || (root != MPI_ROOT && root != MPI_PROC_NULL); }
};

/// Asks the library: local calls.
inline Members members_of(MPI_Comm comm) noexcept {
  Members members;
  int inter = 0;
  if (comm == MPI_COMM_NULL || real.Comm_test_inter(comm, &inter) != MPI_SUCCESS) return members;
  if (real.Comm_rank(comm, &members.rank) != MPI_SUCCESS || real.Comm_size(comm, &members.size) != MPI_SUCCESS) return members;
  members.inter = inter != 0;
  members.peers = members.size;
  if (members.inter && real.Comm_remote_size(comm, &members.peers) != MPI_SUCCESS) return members;
  members.known = true;
  return members;
}

}  // namespace bestride
