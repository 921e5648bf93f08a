/* SPDX-License-Identifier: Apache-2.0 */
/* Several threads make the first MPI calls of the process at the same time; then, with MPI_THREAD_MULTIPLE, the first
 * call of each function that moves data. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { threads = 8, rounds = 50 };

static pthread_barrier_t start;
static int wrong;

static void* ask(void* unused) {
  int flag = 1;
  pthread_barrier_wait(&start);
  if (MPI_Initialized(&flag) != MPI_SUCCESS || flag) __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
  return unused;
}

static void* exchange(void* number) {
  const int tag = (int)(long)number;
  pthread_barrier_wait(&start);
  for (int round = 0; round < rounds; ++round) {
    const int out = 1000 * tag + round;
    int in = -1;
    MPI_Sendrecv(&out, 1, MPI_INT, 0, tag, &in, 1, MPI_INT, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    if (in != out) __atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

static void all(void* (*work)(void*)) {
  pthread_t thread[threads];
  for (long i = 0; i < threads; ++i) pthread_create(&thread[i], NULL, work, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(thread[i], NULL);
}

int main(int argc, char** argv) {
  int provided = 0;
  pthread_barrier_init(&start, NULL, threads);
  all(ask);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  if (provided == MPI_THREAD_MULTIPLE) all(exchange);
  MPI_Finalize();
  if (wrong) puts("wrong answers");
  return wrong;
}
