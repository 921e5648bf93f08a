// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the generated C and C++ programs have in common.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#endif

#define WORLD MPI_COMM_WORLD
#define NO_STATUS MPI_STATUS_IGNORE
#define NEW(type, count) ((type*)calloc((size_t)(count), sizeof(type)))

static int rank, size, last_tag;
static volatile double sink = 1;
extern char** environ;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void check(int holds, const char* what) {
  if (holds) return;
  printf("rank %d: wrong: %s\n", rank, what);
  fflush(stdout);
  MPI_Abort(WORLD, 90);
}
