// SPDX-License-Identifier: Apache-2.0
#pragma once
// Functions that complete requests and that an older mpi.h lacks: the library found at run time may be newer than the
// header. Only their types are used. generate.py counts them among the declared functions.
#include <mpi.h>

#if MPI_VERSION < 4 || (MPI_VERSION == 4 && MPI_SUBVERSION < 1)
extern "C" {
int PMPI_Request_get_status_all(int, const MPI_Request[], int*, MPI_Status*);
int PMPI_Request_get_status_any(int, const MPI_Request[], int*, int*, MPI_Status*);
int PMPI_Request_get_status_some(int, const MPI_Request[], int*, int[], MPI_Status*);
}
#endif
