/* SPDX-License-Identifier: Apache-2.0 */
/* A library that calls MPI although nothing loads an MPI library: its references are not weak and are bound at start.
 * -DLIBRARY makes the library; without it, the program, whose optional argument is an MPI library to load. */
#include <dlfcn.h>
#include <stdio.h>

int call_absent(void);
int call_loaded(void);

#ifdef LIBRARY
#define EXPORT __attribute__((visibility("default")))
int MPI_Barrier(int comm);
double MPI_Wtime(void);
int MPI_Type_commit(void* type);
EXPORT int call_absent(void) { return MPI_Barrier(1) == 16 && MPI_Barrier(1) == 16 && MPI_Wtime() == 0; }
/* Earlier results must not persist. */
EXPORT int call_loaded(void) {
  int type = 0;
  return MPI_Wtime() == 12.25 && MPI_Type_commit(&type) == 77;
}
#else
int main(int argc, char** argv) {
  if (!call_absent()) return 1;
  if (argc > 1 && (!dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) || !call_loaded())) return 2;
  puts("went on");
  return 0;
}
#endif
