// SPDX-License-Identifier: Apache-2.0
// Preloaded last in every mode, also without Bestride: a rank that polls without progress yields its core. MPICH's
// ch4:ucx polls without yielding, so with four ranks on two cores every message would wait for a time slice.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stddef.h>

unsigned ucp_worker_progress(void* worker) {
  static unsigned (*progress)(void*);
  if (progress == NULL) {
    void* library = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);  // RTLD_NEXT does not see what Python loads
    progress = (unsigned (*)(void*))dlsym(library, "ucp_worker_progress");
  }
  unsigned count = progress(worker);
  if (count == 0) sched_yield();
  return count;
}
