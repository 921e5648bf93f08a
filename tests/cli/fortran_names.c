/* SPDX-License-Identifier: Apache-2.0 */
/* Calls MPI_Init, and three functions by the names of Fortran bindings. It is inspected, never run. With
 * FORTRAN_BINDINGS it is the library that defines these three. */
#include <mpi.h>

#ifdef FORTRAN_BINDINGS
#define BODY \
  {}
#else
#define BODY ;
#endif
__attribute__((visibility("default"))) void mpi_isend_(void) BODY;
__attribute__((visibility("default"))) void mpi_wait_f08_(void) BODY;
__attribute__((visibility("default"))) void mpi_bcast_f08ts_(void) BODY;

#ifndef FORTRAN_BINDINGS
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  mpi_isend_(), mpi_wait_f08_(), mpi_bcast_f08ts_();
  return 0;
}
#endif
