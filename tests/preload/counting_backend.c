/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that only counts calls. The preload library opens it in place of the real one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "counted.h"
#include "interpose/preload/services.h"

/* Both names are intercepted: MPICH's mpi_f08 layer calls PMPI_X for functions without a buffer, Open MPI's Fortran
 * layers for all functions. A nested call (a tool that is preloaded after this library calls PMPI_X) is not counted
 * again. */
static __thread int depth;

#define COUNTED(name, parameters, arguments)                                \
  static int(*next_##name) parameters;                                      \
  static int(*next_P##name) parameters;                                     \
  static int count_##name;                                                  \
  static int enter_##name parameters {                                      \
    if (depth == 0) __atomic_fetch_add(&count_##name, 1, __ATOMIC_RELAXED); \
    ++depth;                                                                \
    const int result = next_##name arguments;                               \
    --depth;                                                                \
    return result;                                                          \
  }                                                                         \
  static int enter_P##name parameters {                                     \
    if (depth == 0) __atomic_fetch_add(&count_##name, 1, __ATOMIC_RELAXED); \
    ++depth;                                                                \
    const int result = next_P##name arguments;                              \
    --depth;                                                                \
    return result;                                                          \
  }
COUNTED_CALLS
#undef COUNTED

__attribute__((destructor)) static void report(void) {
  char line[1024] = "counted:";
#define COUNTED(name, parameters, arguments) sprintf(line + strlen(line), " %s %d", #name, count_##name);
  COUNTED_CALLS
#undef COUNTED
  strcat(line, "\n");
  /* A single write, so that the lines of two ranks do not mix: if stdout is unbuffered, puts() writes the newline
   * separately. */
  if (write(1, line, strlen(line)) < 0) _exit(3);
}

static const struct bestride_interception interceptions[] = {
#define COUNTED(name, parameters, arguments) \
  {#name, (void*)enter_##name, (void**)&next_##name}, {"P" #name, (void*)enter_P##name, (void**)&next_P##name},
    COUNTED_CALLS
#undef COUNTED
};

static const struct bestride_backend back = {BESTRIDE_SERVICES_VERSION, "mpich",
                                             sizeof interceptions / sizeof *interceptions, interceptions};

__attribute__((visibility("default"))) const struct bestride_backend* bestride_backend_open(
    const struct bestride_preload_services* preload) {
  /* The services of the preload library: the MPI library's symbol and the next one, for both kinds of names. */
  if (preload->version != BESTRIDE_SERVICES_VERSION || !preload->library_symbol("PMPI_Send") ||
      !preload->next_symbol("MPI_Send") || preload->library_symbol("MPI_No_such_function") ||
      !strstr(preload->preload_path, "/libbestride.so"))
    return NULL;
  return &back;
}
