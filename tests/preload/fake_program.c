/* SPDX-License-Identifier: Apache-2.0 */
/* fake_program MODE [REPEATS]: linked with the fake MPI library like an application with a real one. Prints its
 * results, which expect.py compares. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_mpi.h"

#define REQUIRE(what)      \
  if (!(what)) {           \
    puts("wrong: " #what); \
    return 1;              \
  }

/* Twice: the first call goes through the lazy thunk, the second through the slot. */
static int arguments(void) {
  for (int call = 0; call < 2; ++call) {
    REQUIRE(MPI_Sendrecv(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12))
    REQUIRE(MPI_T_event_read(1, .5, 2, 1.5, 3, 2.5, 4, 3.5, 5, 4.5, 6, 5.5, 6.5, 7.5, 7, 8, 8.5, 9.5))
    REQUIRE(MPI_Pcontrol(3, 1.25, 2.25, 1L << 40, -3.25))
    REQUIRE(MPI_T_event_copy(3, .5, 1.5, 2.5) == 3)
    REQUIRE(MPI_Wtime() == 12.25)
    REQUIRE(MPI_Aint_add(1L << 40, 2) == (1L << 40) + 2)
    REQUIRE(MPI_Comm_rank(6) == 6)
  }
  return 0;
}

/* Prints which backend is open. */
static int intercepted(void) {
  int (*profiling_commit)(void*) = (int (*)(void*))dlsym(RTLD_DEFAULT, "PMPI_Type_commit");
  void* (*slot_target)(const char*) = (void* (*)(const char*))dlsym(RTLD_DEFAULT, "bestride_slot_target");
  Dl_info info;
  int type = 0;
  REQUIRE(slot_target && !slot_target("MPI_Type_commit") && !slot_target("MPI_Nothing"))
  printf("first call: MPI_Type_commit %d\n", MPI_Type_commit(&type));
  printf("first call: PMPI_Type_commit %d\n", profiling_commit(&type));
  REQUIRE(dladdr(slot_target("MPI_Type_commit"), &info))
  printf("MPI_Type_free is %s\n", slot_target("MPI_Type_free") ? "intercepted" : "left alone");
  printf("MPI_Type_commit is in %s\n", strrchr(info.dli_fname, '/') + 1);
  return 0;
}

enum { threads = 16 };
static pthread_barrier_t start;
static int wrong;

static void* first_calls(void* number) {
  int type = 0;
  pthread_barrier_wait(&start);
  /* Half of the threads make another first call before the intercepted function. */
  if ((long)number % 2) arguments();
  if (MPI_Type_commit(&type) != 77) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
  return NULL;
}

static int many_threads(void) {
  pthread_t thread[threads];
  pthread_barrier_init(&start, NULL, threads);
  for (long i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, first_calls, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  REQUIRE(wrong == 0)
  void* (*slot_target)(const char*) = (void* (*)(const char*))dlsym(RTLD_DEFAULT, "bestride_slot_target");
  Dl_info info;
  REQUIRE(slot_target && dladdr(slot_target("MPI_Type_commit"), &info))
  const int* opened = (const int*)dlsym(dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY), "stub_back_opened");
  REQUIRE(opened && *opened == 1)
  return 0;
}

/* The number of pre-call hooks. While the backend watches, every call that it does not intercept calls the hook, under
 * both names, except local ones. Arguments and results do not change. */
static const int* told_count(void) {
  void* (*slot_target)(const char*) = (void* (*)(const char*))dlsym(RTLD_DEFAULT, "bestride_slot_target");
  Dl_info info;
  if (!slot_target || !dladdr(slot_target("MPI_Type_commit"), &info)) return NULL;
  return (const int*)dlsym(dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY), "stub_back_told");
}

static int watched(void) {
  int (*profiling_init)(int*, char***) = (int (*)(int*, char***))dlsym(RTLD_DEFAULT, "PMPI_Init");
  void* (*slot_target)(const char*) = (void* (*)(const char*))dlsym(RTLD_DEFAULT, "bestride_slot_target");
  int type = 0;
  if (arguments() != 0) return 1; /* resolved before the backend watches */
  void* const before = slot_target("MPI_Sendrecv");
  const int* told = told_count();
  REQUIRE(before && told && *told == 0)
  REQUIRE(MPI_Type_commit(&type) == 77 && *told == 0)
  for (int call = 1; call <= 3; ++call) {
    REQUIRE(MPI_Sendrecv(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12) && *told == call)
    REQUIRE(slot_target("MPI_Sendrecv") == before)
    REQUIRE(MPI_T_event_read(1, .5, 2, 1.5, 3, 2.5, 4, 3.5, 5, 4.5, 6, 5.5, 6.5, 7.5, 7, 8, 8.5, 9.5))
    REQUIRE(MPI_Aint_add(1, 2) == 3 && MPI_Wtime() == 12.25 && *told == call)
  }
  /* This function is resolved only now. */
  REQUIRE(profiling_init && profiling_init(NULL, NULL) == 0 && *told == 4)
  REQUIRE(profiling_init(NULL, NULL) == 0 && *told == 5)
  REQUIRE(MPI_Type_commit(&type) == 77 && *told == 5)
  return 0;
}

static void* call_or_watch(void* number) {
  int type = 0;
  int (*init)(int*, char***) = (int (*)(int*, char***))dlsym(RTLD_DEFAULT, "MPI_Init");
  pthread_barrier_wait(&start);
  if ((long)number == 0)
    MPI_Type_commit(&type);
  else if ((long)number % 2)
    MPI_Sendrecv(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12);
  else
    init(NULL, NULL);
  return NULL;
}

/* First calls race with the start of watching. Afterwards all calls must be watched. */
static int watched_by_many_threads(void) {
  pthread_t thread[threads];
  int (*init)(int*, char***) = (int (*)(int*, char***))dlsym(RTLD_DEFAULT, "MPI_Init");
  pthread_barrier_init(&start, NULL, threads);
  MPI_Comm_rank(1);
  for (long i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, call_or_watch, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
  const int* told = told_count();
  REQUIRE(told)
  const int before = *told;
  REQUIRE(MPI_Sendrecv(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12) && *told == before + 1)
  REQUIRE(init(NULL, NULL) == 0 && *told == before + 2)
  return 0;
}

/* A library that is preloaded by a relative path must find its backend after chdir. */
static int elsewhere(void) { return chdir("/") == 0 ? intercepted() : 1; }

/* MPI functions that the MPI library lacks and only the preload library defines. */
__attribute__((weak)) int MPI_Comm_spawn(void);
__attribute__((weak)) int MPI_Win_wait(void);
static int missing(void) {
  REQUIRE(!dlsym(RTLD_DEFAULT, "MPI_Comm_spawn") && !dlsym(RTLD_DEFAULT, "PMPI_Win_wait") &&
          dlsym(RTLD_DEFAULT, "MPI_Init"))
  REQUIRE(!MPI_Comm_spawn && !MPI_Win_wait)
  return 0;
}

static int spin(long repeats) {
  long sum = 0;
  for (long i = 0; i < repeats; ++i) sum = MPI_Aint_add(sum, i);
  return sum == repeats * (repeats - 1) / 2 ? 0 : 1;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "arguments") == 0) return arguments();
  if (strcmp(mode, "intercepted") == 0) return intercepted();
  if (strcmp(mode, "threads") == 0) return many_threads();
  if (strcmp(mode, "watched") == 0) return watched();
  if (strcmp(mode, "watched_threads") == 0) return watched_by_many_threads();
  if (strcmp(mode, "elsewhere") == 0) return elsewhere();
  if (strcmp(mode, "missing") == 0) return missing();
  if (strcmp(mode, "spin") == 0 && argc > 2) return spin(atol(argv[2]));
  puts("no such mode");
  return 2;
}

/* The entry if this program is built as a plugin: plugin_host PLUGIN MODE. */
__attribute__((visibility("default"))) int make_calls(int* argc, char*** argv) { return main(*argc - 1, *argv + 1); }
