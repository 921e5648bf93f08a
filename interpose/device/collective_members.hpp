// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which ranks take part in a collective, and in which role.
#include <mpi.h>

#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {

struct CollectiveMembers {
  bool known = false;  ///< false: not a valid communicator; MPI raises the error
  bool inter = false;
  int rank = 0;
  int size = 0;   ///< of the local group
  int peers = 0;  ///< blocks in a direction with one block per rank: the remote group's size if `inter`

  /// True if the root's arguments are significant on the calling rank.
  bool is_root(int root) const noexcept { return inter ? root == MPI_ROOT : rank == root; }
  /// True if the calling rank sends data to the root or receives data from it.
  bool has_part(int root) const noexcept { return !inter || (root != MPI_ROOT && root != MPI_PROC_NULL); }
};

/// Queries the MPI library. All calls are local.
inline CollectiveMembers members_of(MPI_Comm comm) noexcept {
  CollectiveMembers members;
  int inter = 0;
  if (comm == MPI_COMM_NULL || real.Comm_test_inter(comm, &inter) != MPI_SUCCESS) return members;
  if (real.Comm_rank(comm, &members.rank) != MPI_SUCCESS || real.Comm_size(comm, &members.size) != MPI_SUCCESS)
    return members;
  members.inter = inter != 0;
  members.peers = members.size;
  if (members.inter && real.Comm_remote_size(comm, &members.peers) != MPI_SUCCESS) return members;
  members.known = true;
  return members;
}

}  // namespace bestride::inline interpose
