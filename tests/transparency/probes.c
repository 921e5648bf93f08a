/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the MPI functions that dlsym and weak references find, which must not depend on the preload library. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

/* By other names, since mpi.h may declare them. */
__attribute__((weak)) int buffer_flush(void) __asm__("MPI_Buffer_flush");
__attribute__((weak)) int abi_get_version(void) __asm__("PMPI_Abi_get_version");
__attribute__((weak)) int session_init(void) __asm__("MPI_Session_init");

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
  printf("weak %d %d %d\n", buffer_flush != NULL, abi_get_version != NULL, session_init != NULL);
  MPI_Finalize();
  return 0;
}
