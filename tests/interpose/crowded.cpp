// SPDX-License-Identifier: Apache-2.0
// interpose_crowded yields|keeps one|all: messages, collectives and one-sided operations for which ranks wait, with all
// ranks bound to one processor, or with a processor for each. Counts the calls of sched_yield(): with "yields" each
// rank must have made some while it waited, with "keeps" none.
#include <mpi.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {
std::atomic<long> yields{0};
}

// In place of libc's, for every object of the process.
extern "C" __attribute__((visibility("default"))) int sched_yield() noexcept {
  yields.fetch_add(1, std::memory_order_relaxed);
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace {

int rank = 0, size = 0;

/// The others wait for `late`, which is 20 ms late.
void arrive_late(int late) {
  if (rank == late) usleep(20'000);
}

int failures = 0;
void expect_yields(const char* what, bool wanted, bool waited) {
  const long counted = yields.exchange(0);
  if (!waited || (counted > 0) == wanted) return;
  std::fprintf(stderr, "rank %d: %ld yields while it waited in %s\n", rank, counted, what);
  ++failures;
}

void expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "rank %d: wrong data by %s\n", rank, what);
  ++failures;
}

void each_call_that_waits(bool wanted) {
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  int out = rank, in = -1;
  std::vector<int> large(1 << 18, rank), received(1 << 18);
  const int bytes = static_cast<int>(large.size());
  struct Call {
    const char* name;
    void (*make)(int left, int right, int* out, int* in, int* large, int* received, int count);
  };
  const Call calls[] = {
      {"MPI_Recv",
       [](int left, int right, int* out, int* in, int*, int*, int) {
         MPI_Request request;
         MPI_Isend(out, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &request);
         MPI_Recv(in, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
         MPI_Wait(&request, MPI_STATUS_IGNORE);
       }},
      {"MPI_Sendrecv",
       [](int left, int right, int* out, int* in, int*, int*, int) {
         MPI_Sendrecv(out, 1, MPI_INT, right, 0, in, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
       }},
      {"MPI_Waitall",
       [](int left, int right, int*, int*, int* large, int* received, int count) {
         MPI_Request requests[2];
         MPI_Irecv(received, count, MPI_INT, left, 0, MPI_COMM_WORLD, &requests[0]);
         MPI_Isend(large, count, MPI_INT, right, 0, MPI_COMM_WORLD, &requests[1]);
         MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
       }},
      {"MPI_Probe",
       [](int left, int right, int* out, int* in, int*, int*, int) {
         MPI_Request request;
         MPI_Isend(out, 1, MPI_INT, right, 0, MPI_COMM_WORLD, &request);
         MPI_Probe(left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
         MPI_Recv(in, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
         MPI_Wait(&request, MPI_STATUS_IGNORE);
       }},
  };
  for (const Call& call : calls) {
    MPI_Barrier(MPI_COMM_WORLD);
    yields.store(0);
    // The rank to the right of the late one waits for its message.
    arrive_late(0);
    in = -1;
    received.assign(received.size(), -1);
    call.make(left, right, &out, &in, large.data(), received.data(), bytes);
    expect(in == left || (received.front() == left && received.back() == left), call.name);
    expect_yields(call.name, wanted, left == 0 && rank != 0);
  }
  arrive_late(0);
  MPI_Barrier(MPI_COMM_WORLD);
  expect_yields("MPI_Barrier", wanted, rank != 0);
  arrive_late(0);
  int sum = 0;
  MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  expect(sum == size * (size - 1) / 2, "MPI_Allreduce");
  expect_yields("MPI_Allreduce", wanted, rank != 0);
  arrive_late(0);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_free(&comm);
  expect_yields("MPI_Comm_dup", wanted, rank != 0);
  MPI_Win win;
  int* memory = nullptr;
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_fence(0, win);
  yields.store(0);
  arrive_late(0);
  MPI_Win_fence(0, win);
  expect_yields("MPI_Win_fence", wanted, rank != 0);
  MPI_Win_free(&win);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 2;
  if (std::strcmp(argv[2], "one") == 0) {
    int first = 0;
    while (!CPU_ISSET(first, &allowed)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return 2;
  } else if (CPU_COUNT(&allowed) < 2) {
    std::puts("skipped: needs two processors");
    return 77;
  }
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  each_call_that_waits(std::strcmp(argv[1], "yields") == 0);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
