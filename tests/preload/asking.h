/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The ways in which a program, a library that it is linked with, and a plugin ask whether an MPI function exists. All
 * of them print their results; compare_runs.py expects the same lines with and without the preload library. */
#include <stddef.h>
#include <stdio.h>

/* The fake MPI library has the first two, one of its kinds has the third, and none has the others. */
__attribute__((weak)) int MPI_Type_commit(void* type);
__attribute__((weak)) int PMPI_Comm_size(int comm);
__attribute__((weak)) int MPI_Abi_get_version(int* major, int* minor);
__attribute__((weak)) int MPI_Comm_spawn(void);
__attribute__((weak)) int PMPI_Win_wait(void);

static void* const asking_pointers[] = {(void*)MPI_Type_commit, (void*)PMPI_Comm_size, (void*)MPI_Abi_get_version,
                                        (void*)MPI_Comm_spawn, (void*)PMPI_Win_wait};

static inline void asking_print(const char* when, const char* who, const char* how, int a, int b, int c, int d, int e) {
  printf("%s: %s, %s: %d %d %d %d %d\n", when, who, how, a, b, c, d, e);
}

static inline void ask_weak_references(const char* when, const char* who) {
  void* const volatile* const pointers = asking_pointers;
  asking_print(when, who, "tests", MPI_Type_commit != NULL, PMPI_Comm_size != NULL, MPI_Abi_get_version != NULL,
               MPI_Comm_spawn != NULL, PMPI_Win_wait != NULL);
  asking_print(when, who, "pointers", pointers[0] != NULL, pointers[1] != NULL, pointers[2] != NULL,
               pointers[3] != NULL, pointers[4] != NULL);
}
