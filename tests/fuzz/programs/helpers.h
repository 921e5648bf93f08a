// SPDX-License-Identifier: Apache-2.0
#pragma once
/* Functions that the emitted C programs call in addition to MPI. Follows common.h. */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>

static MPI_Request q[20000];
static MPI_Status st[20000];
static int fuzz_rank, fuzz_wrong;
static __thread int at_pack, at_unpack, t_deep;

FUZZ_FUNCTION void wrong(const char* what) {
  printf("rank %d: wrong: %s\n", fuzz_rank, what);
  fflush(stdout);
  ++fuzz_wrong;
}
/* Checks that the error class of a call is the same as without the preload library. */
#define rc(expected, call) fuzz_check((expected), (call), #call)
FUZZ_FUNCTION void fuzz_check(int expected, int code, const char* call) {
  char text[300];
  if (fuzz_class(code) == expected) return;
  snprintf(text, sizeof text, "class %d instead of %d: %.200s", fuzz_class(code), expected, call);
  wrong(text);
}
FUZZ_FUNCTION void is(const char* name, long long value, long long expected) {
  char text[200];
  if (value == expected) return;
  snprintf(text, sizeof text, "%s is %lld instead of %lld", name, value, expected);
  wrong(text);
}
FUZZ_FUNCTION void buffer(const char* label, const void* at, int64_t length, uint64_t digest) {
  char text[200];
  if (fuzz_digest(at, length) == digest) return;
  snprintf(text, sizeof text, "buffer %s", label);
  wrong(text);
}
FUZZ_FUNCTION void status(const char* label, const MPI_Status* s, int source, int tag) {
  char text[200];
  if (s->MPI_SOURCE == source && s->MPI_TAG == tag) return;
  snprintf(text, sizeof text, "%s: source %d tag %d instead of %d and %d", label, s->MPI_SOURCE, s->MPI_TAG, source,
           tag);
  wrong(text);
}
FUZZ_FUNCTION void callbacks(const char* expected) {
  if (strcmp(expected, fuzz_log) != 0) printf("callbacks: %s instead of %s\n", fuzz_log, expected), wrong("callbacks");
  fuzz_log[0] = 0;
}

FUZZ_FUNCTION void fuzz_gather(int n, const int* ids, MPI_Request* requests) {
  for (int i = 0; i < n; ++i) requests[i] = q[ids[i]];
}
FUZZ_FUNCTION void fuzz_store(int n, const int* ids, const MPI_Request* requests) {
  for (int i = 0; i < n; ++i) q[ids[i]] = requests[i];
}
FUZZ_FUNCTION void fuzz_all(int n, const int* ids, int test) {
  MPI_Request requests[500];
  MPI_Status statuses[500];
  int flag = 0;
  fuzz_gather(n, ids, requests);
  if (test)
    while (!flag && MPI_Testall(n, requests, &flag, statuses) == MPI_SUCCESS) {
    }
  else
    MPI_Waitall(n, requests, statuses);
  for (int i = 0; i < n; ++i) st[ids[i]] = statuses[i];
  fuzz_store(n, ids, requests);
}
FUZZ_FUNCTION void fuzz_any(int n, const int* ids, int test) {
  MPI_Request requests[500];
  fuzz_gather(n, ids, requests);
  for (int left = n; left > 0;) {
    int index = MPI_UNDEFINED, flag = 1;
    MPI_Status one;
    if ((test ? MPI_Testany(n, requests, &index, &flag, &one) : MPI_Waitany(n, requests, &index, &one)) != MPI_SUCCESS)
      wrong("any");
    if (!flag) continue;
    if (index == MPI_UNDEFINED) {
      wrong("any: nothing left");
      break;
    }
    st[ids[index]] = one;
    --left;
  }
  fuzz_store(n, ids, requests);
}
FUZZ_FUNCTION void fuzz_some(int n, const int* ids, int test) {
  MPI_Request requests[500];
  MPI_Status statuses[500];
  int indices[500];
  fuzz_gather(n, ids, requests);
  for (int left = n; left > 0;) {
    int done = 0;
    if ((test ? MPI_Testsome(n, requests, &done, indices, statuses)
              : MPI_Waitsome(n, requests, &done, indices, statuses)) != MPI_SUCCESS)
      wrong("some");
    if (done == MPI_UNDEFINED) {
      wrong("some: nothing left");
      break;
    }
    for (int i = 0; i < done; ++i) st[ids[indices[i]]] = statuses[i];
    left -= done;
  }
  fuzz_store(n, ids, requests);
}
#define wait_all(n, ...) fuzz_all((n), (__VA_ARGS__), 0)
#define test_all(n, ...) fuzz_all((n), (__VA_ARGS__), 1)
#define wait_any(n, ...) fuzz_any((n), (__VA_ARGS__), 0)
#define test_any(n, ...) fuzz_any((n), (__VA_ARGS__), 1)
#define wait_some(n, ...) fuzz_some((n), (__VA_ARGS__), 0)
#define test_some(n, ...) fuzz_some((n), (__VA_ARGS__), 1)
FUZZ_FUNCTION void test_one(int id) {
  int flag = 0;
  while (!flag && MPI_Test(&q[id], &flag, &st[id]) == MPI_SUCCESS) {
  }
}
FUZZ_FUNCTION void ask_one(int id) {
  int flag = 0;
  while (!flag && MPI_Request_get_status(q[id], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS) {
  }
  MPI_Wait(&q[id], &st[id]);
}
FUZZ_FUNCTION void start_all(int n, const int* ids) {
  MPI_Request requests[500];
  fuzz_gather(n, ids, requests);
  if (MPI_Startall(n, requests) != MPI_SUCCESS) wrong("start");
  fuzz_store(n, ids, requests);
}
FUZZ_FUNCTION void poll(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* s) {
  int flag = 0;
  while (!flag)
    if (message)
      MPI_Improbe(source, tag, comm, &flag, message, s);
    else
      MPI_Iprobe(source, tag, comm, &flag, s);
}
FUZZ_FUNCTION void recommit(MPI_Datatype type, int n) {
  for (int i = 0; i < n; ++i) MPI_Type_commit(&type);
}
FUZZ_FUNCTION MPI_Datatype nested(MPI_Datatype type, int depth) {
  for (int i = 0; i < depth; ++i) {
    MPI_Datatype outer;
    MPI_Type_contiguous(1, type, &outer);
    MPI_Type_free(&type);
    type = outer;
  }
  MPI_Type_commit(&type);
  return type;
}
FUZZ_FUNCTION char* huge_memory(size_t bytes) {
  return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
FUZZ_FUNCTION void two_threads(void* (*one)(void*), void* (*other)(void*)) {
  pthread_t threads[2];
  pthread_create(&threads[0], 0, one, 0);
  pthread_create(&threads[1], 0, other, 0);
  pthread_join(threads[0], 0);
  pthread_join(threads[1], 0);
}
