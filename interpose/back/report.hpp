// SPDX-License-Identifier: Apache-2.0
#pragma once
// The end-of-job report: all ranks' ledgers to rank 0, text to stderr, JSON to a file.
#include <mpi.h>

#include "telemetry/ledger.hpp"

namespace bestride {

/// Collective over `comm`, a communicator of our own with MPI_ERRORS_RETURN. If a rank has no memory, its lines are missing.
void gather_and_write(MPI_Comm comm, const ReportHeader& header, Ledger& ledger) noexcept;

}  // namespace bestride
