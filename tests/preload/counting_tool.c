/* SPDX-License-Identifier: Apache-2.0 */
/* Another preloaded tool: defines MPI_X, counts, and calls the next MPI_X or, with -DTOOL_CALLS_PMPI, PMPI_X. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "counted.h"

#ifdef TOOL_CALLS_PMPI
#define NEXT(name) dlsym(RTLD_DEFAULT, "P" #name)
#else
#define NEXT(name) dlsym(RTLD_NEXT, #name)
#endif

#define COUNTED(name, parameters, arguments)                   \
  static int count_##name;                                     \
  __attribute__((visibility("default"))) int name parameters { \
    int(*next) parameters = (int(*) parameters)NEXT(name);     \
    __atomic_fetch_add(&count_##name, 1, __ATOMIC_RELAXED);    \
    return next arguments;                                     \
  }
COUNTED_CALLS
#undef COUNTED

__attribute__((destructor)) static void report(void) {
  char line[1024] = "tool:";
#define COUNTED(name, parameters, arguments) sprintf(line + strlen(line), " %s %d", #name, count_##name);
  COUNTED_CALLS
#undef COUNTED
  strcat(line, "\n");
  /* A single write, so that the lines of two ranks do not mix: if stdout is unbuffered, puts() writes the newline
   * separately. */
  if (write(1, line, strlen(line)) < 0) _exit(3);
}
