/* SPDX-License-Identifier: Apache-2.0 */
/* A profiling tool that is linked into the program. */
#include <mpi.h>

int MPI_Barrier(MPI_Comm communicator) { return PMPI_Barrier(communicator); }
