// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI errors of ours: where device memory can't be moved and MPI must not be handed it.
#include <mpi.h>

#include "base/result.hpp"

namespace bestride {

/// Says once why device memory could not be moved, and what to do.
void say_not_moved(const Error& why) noexcept;

/// Raises `error` (MPI_ERR_OTHER, MPI_ERR_IN_STATUS) by the communicator's error handler, or MPI_COMM_WORLD's where none is at hand (MPI_Mrecv),
/// and returns it if the handler returns.
int raise(MPI_Comm comm, int error = MPI_ERR_OTHER) noexcept;

}  // namespace bestride
