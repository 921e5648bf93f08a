// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every combination in one launch, for tests: starting an MPI job costs more than a small case.
#include <mpi.h>

#include "options.hpp"

namespace halo3d {

/// Collective. Runs every method, spelling, neighbourhood and border at radius 1 to 3 on a domain of few cells; storage,
/// element type, quantities and messages change from one to the next, so that each meets each. At most two exchanges a case,
/// one if that is what --iterations says. Rank 0 prints a closing line.
/// Returns the number of wrong values over all ranks.
long long sweep(MPI_Comm communicator, const Options& options);

}  // namespace halo3d
