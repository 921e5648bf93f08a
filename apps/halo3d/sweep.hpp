// SPDX-License-Identifier: Apache-2.0
#pragma once
// All combinations in one launch, for tests: starting an MPI job costs more than a small case.
#include <mpi.h>

#include "options.hpp"

namespace halo3d {

/// Collective. Runs every method, spelling, neighborhood and border at radius 1 to 3 on a small domain. Storage,
/// element type, quantities and messages change from case to case, so that every pair of settings occurs. At most two
/// exchanges per case, one if --iterations says so. Rank 0 prints a final line. Returns the number of wrong values over
/// all ranks.
long long sweep(MPI_Comm communicator, const Options& options);

}  // namespace halo3d
