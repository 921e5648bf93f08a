/* SPDX-License-Identifier: Apache-2.0 */
/* Weak references of a shared library: the program is linked with it (asking_library_ask), or loads it as a plugin
 * (plugin_ask). With -DCALLS_MPI, a plugin that needs MPI: its calls print results, which show who was called. */
#include "asking.h"

#define EXPORT __attribute__((visibility("default")))

#ifdef CALLS_MPI
int MPI_Comm_rank(int comm);
int PMPI_Type_commit(void* type);
static int (*const commit_by_pointer)(void*) = PMPI_Type_commit;
static int early;
__attribute__((constructor)) static void call_early(void) { early = MPI_Type_commit(&early); }

EXPORT void plugin_call(void) {
  int (*const volatile pointer)(void*) = commit_by_pointer;
  int type = 0;
  printf("calls: %d %d %d %d\n", early, MPI_Type_commit(&type), pointer(&type), MPI_Comm_rank(4));
}
#else
__attribute__((constructor)) static void ask_early(void) { ask_weak_references("constructor", "library"); }
#endif

EXPORT void asking_library_ask(const char* when) { ask_weak_references(when, "library"); }
EXPORT void plugin_ask(const char* when) { ask_weak_references(when, "plugin"); }
