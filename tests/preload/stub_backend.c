/* SPDX-License-Identifier: Apache-2.0 */
/* Backends of every kind for the fake MPI library. -DBACKEND_ABI="...", and one of -DBACKEND_REFUSES,
 * -DBACKEND_VERSION=n, -DBACKEND_WITHOUT_SYMBOL, -DBACKEND_CALLS_MPI, -DBACKEND_SLEEPS, -DBACKEND_WAITS_FOR_A_CALL,
 * -DBACKEND_WATCHES. */
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include "fake_mpi.h"
#include "interpose/preload/services.h"

#define EXPORT __attribute__((visibility("default")))
#ifndef BACKEND_VERSION
#define BACKEND_VERSION BESTRIDE_SERVICES_VERSION
#endif

static int (*next_commit)(void*);
static int (*next_profiling_commit)(void*);

#ifdef BACKEND_WATCHES
/* Watches from the first MPI_Type_commit on. The hook must not change the arguments of the call that it precedes. */
static const struct bestride_preload_services* services;
EXPORT int stub_back_told = 0;
static double sum;
static void told(void) {
  int (*rank)(int) = (int (*)(int))services->library_symbol("PMPI_Comm_rank");
  for (int i = 0; i < 100; ++i) sum += .5 * rank(i);
  __atomic_fetch_add(&stub_back_told, 1, __ATOMIC_RELAXED);
}
static int commit(void* type) {
  services->watch(told);
  services->watch(NULL); /* only the first call of watch() has an effect */
  return next_commit(type) == 1 ? 77 : -1;
}
#else
static int commit(void* type) { return next_commit && next_commit(type) == 1 ? 77 : -1; }
#endif
static int profiling_commit(void* type) { return next_profiling_commit && next_profiling_commit(type) == 1 ? 78 : -1; }

/* The fake library has no MPI_Type_free, so that interception must not change its slot. It has an MPI_Nothing, which
 * has no slot. */
static void* next_free;
static void* next_nothing;
static const struct bestride_interception interceptions[] = {
    {"MPI_Type_commit", (void*)commit, (void**)&next_commit},
    {"PMPI_Type_commit", (void*)profiling_commit, (void**)&next_profiling_commit},
    {"MPI_Type_free", (void*)commit, &next_free},
    {"MPI_Nothing", (void*)commit, &next_nothing},
};
static const struct bestride_backend back = {BACKEND_VERSION, BACKEND_ABI, sizeof interceptions / sizeof *interceptions,
                                             interceptions};

EXPORT int stub_back_opened = 0;

#ifdef BACKEND_WAITS_FOR_A_CALL
static int other_called;
static void* call_mpi(void* unused) {
  other_called = MPI_Comm_size(5) == 5;
  return unused;
}
#endif

#ifdef BACKEND_WITHOUT_SYMBOL
#define bestride_backend_open something_else
#endif

EXPORT const struct bestride_backend* bestride_backend_open(const struct bestride_preload_services* preload) {
  __atomic_fetch_add(&stub_back_opened, 1, __ATOMIC_RELAXED);
  if (preload->version != BESTRIDE_SERVICES_VERSION) return NULL;
#ifdef BACKEND_WATCHES
  services = preload;
#endif
#ifdef BACKEND_REFUSES
  return NULL;
#endif
#ifdef BACKEND_CALLS_MPI
  /* These calls are made while the backend is opened and must not wait for that: through the stubs, and through a
   * library function that calls another one by its global name. */
  struct timespec before, after;
  clock_gettime(CLOCK_MONOTONIC, &before);
  int (*rank)(int) = (int (*)(int))preload->library_symbol("PMPI_Comm_rank");
  int (*commit_by_name)(void*) = (int (*)(void*))dlsym(RTLD_DEFAULT, "MPI_Type_commit");
  if (!rank || rank(9) != 9 || !commit_by_name || commit_by_name(&next_free) != 1) return NULL;
  clock_gettime(CLOCK_MONOTONIC, &after);
  if (after.tv_sec - before.tv_sec > 3) return NULL;
#endif
#ifdef BACKEND_SLEEPS
  const struct timespec pause = {0, 100 * 1000 * 1000};
  nanosleep(&pause, NULL);
#endif
#ifdef BACKEND_WAITS_FOR_A_CALL
  pthread_t other;
  pthread_create(&other, NULL, call_mpi, NULL);
  pthread_join(other, NULL);
  if (!other_called) return NULL;
#endif
  return &back;
}
