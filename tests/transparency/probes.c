/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the MPI functions that dlsym finds, which must not depend on the preload library. Weak references are bound
 * before the preload library can hide a symbol (interpose/README.md). */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  static const char* const names[] = {"MPI_Buffer_flush",
                                      "PMPI_Buffer_flush",
                                      "MPI_Abi_get_version",
                                      "MPI_Comm_attach_buffer",
                                      "MPI_Session_attach_buffer",
                                      "MPI_Type_get_value_index",
                                      "MPI_Request_get_status_all",
                                      "MPI_Remove_error_class",
                                      "MPI_Status_get_error",
                                      "MPI_Send",
                                      "MPI_Send_c",
                                      "MPI_Isendrecv",
                                      "MPI_Psend_init",
                                      "MPI_Session_init",
                                      "MPIX_Query_cuda_support"};
  MPI_Init(&argc, &argv);
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i)
    printf("dlsym %s %d\n", names[i], dlsym(RTLD_DEFAULT, names[i]) != NULL);
  MPI_Finalize();
  return 0;
}
