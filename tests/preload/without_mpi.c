/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is not linked with MPI and tests weak references to MPI functions, as libraries do to detect MPI. */
#include <dlfcn.h>
#include <stdio.h>

__attribute__((weak)) int MPI_Initialized(int* flag);
__attribute__((weak)) int PMPI_Finalized(int* flag);
__attribute__((weak)) int MPI_Barrier(int comm);
__attribute__((weak)) double MPI_Wtime(void);
__attribute__((weak)) int MPI_Type_commit(void* type);

int main(int argc, char** argv) {
  int initialized = 5;
  int finalized = 5;
  if (!MPI_Initialized) return 0;
  if (MPI_Initialized(&initialized) != 0 || initialized != 0 || PMPI_Finalized(&finalized) != 0 || finalized != 0)
    return 1;
  /* With an argument, it continues as if MPI were present. */
  if (argc > 1 && (MPI_Barrier(1) != 16 || MPI_Barrier(1) != 16 || MPI_Wtime() != 0)) return 2;
  /* With a second argument, it loads that MPI library. Earlier results must not persist. */
  if (argc > 2 && (!dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) || MPI_Wtime() != 12.25 || MPI_Type_commit(argv) != 77))
    return 3;
  puts("went on");
  return 0;
}
