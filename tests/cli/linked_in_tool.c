/* SPDX-License-Identifier: Apache-2.0 */
/* What a profiling tool linked into the program looks like. */
#include <mpi.h>

int MPI_Barrier(MPI_Comm communicator) { return PMPI_Barrier(communicator); }
