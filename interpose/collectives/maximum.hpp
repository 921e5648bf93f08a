// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operation with which members of a communicator agree: the maximum of MPI_INT64_T.
//
// It is not MPI_MAX, because MPICH 4.0.2 takes 131 KiB of stack to combine integers, even one; its other collectives
// take less than 16 KiB, and a thread of the application may have no more.
#include <mpi.h>

namespace bestride::inline interpose {

/// Valid while job() is not nullptr.
MPI_Op maximum() noexcept;

/// False: the library has no memory for it.
bool make_maximum() noexcept;
void free_maximum() noexcept;

/// True if `good` is true on all members; waits for them.
bool on_all_members(MPI_Comm comm, bool good) noexcept;

}  // namespace bestride::inline interpose
