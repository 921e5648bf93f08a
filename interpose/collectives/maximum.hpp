// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operation with which members of a communicator agree: the maximum of MPI_INT64_T.
//
// It is not MPI_MAX (quirks::maximum_takes_much_stack).
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
