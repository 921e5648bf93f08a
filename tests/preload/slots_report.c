/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the target of every slot after each call of counted.h, one "slot NAME OBJECT" line each ("-": not resolved,
 * "same": the MPI library's own definition). The argument is functions.tsv. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "calls.h"

static void* (*slot_target)(const char*);
static void* library;

static void report(const char* name) {
  void* const target = slot_target(name);
  Dl_info info;
  const char* object = "-";
  if (target) {
    object = target == dlsym(library, name) ? "same" : dladdr(target, &info) ? strrchr(info.dli_fname, '/') + 1 : "?";
  }
  /* "lacks": the MPI library does not have the function, so it cannot be intercepted. */
  printf("slot %s %s\n", name, target || dlsym(library, name) ? object : "lacks");
}

int main(int argc, char** argv) {
  char line[256];
  slot_target = (void* (*)(const char*))dlsym(RTLD_DEFAULT, "bestride_slot_target");
  FILE* table = fopen(argv[1], "r");
  if (!slot_target || !table || make_calls(&argc, &argv) != 0) return 2;
  /* No backend intercepts MPI_Wtick, so its slot leads to the MPI library. */
  Dl_info info;
  if (!dladdr(slot_target("MPI_Wtick"), &info) || !(library = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY)))
    return 3;
  while (fgets(line, sizeof line, table)) {
    if (line[0] == '#') continue;
    char name[128] = "P";
    strcat(name, strtok(line, "\t"));
    report(name + 1);
    report(name);
  }
  return 0;
}
