// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI errors raised by Bestride: device memory that can't be moved and that MPI must not be given.
#include <mpi.h>

#include "base/result.hpp"

namespace bestride::inline interpose {

/// Reports once why device memory could not be moved, and what the user can do.
void report_transfer_failure(const Error& why) noexcept;

/// Raises `error` (MPI_ERR_OTHER, MPI_ERR_IN_STATUS) through the error handler of `comm`, or of MPI_COMM_WORLD if
/// `comm` is MPI_COMM_NULL (MPI_Mrecv). Returns `error` if the handler returns.
int raise_error(MPI_Comm comm, int error = MPI_ERR_OTHER);

}  // namespace bestride::inline interpose
