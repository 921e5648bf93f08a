// SPDX-License-Identifier: Apache-2.0
// The cost of an intercepted call that Bestride does not change: a plain MPI program, run without the preload library,
// with it, and with it but disabled. One process; each case repeats a call (or the shortest closed group of calls) on
// predefined types.
//   call_overhead time            one JSON line per case: median nanoseconds of one group
//   call_overhead count CASE N    runs only one case, N times, for an instruction counter
//   call_overhead start           one JSON line: nanoseconds of MPI_Init and of MPI_Finalize
#include <mpi.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/median.hpp"

namespace {

double value_out = 1, value_in = 0;
char packed[64];

void comm_rank() {
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}
void type_size() {
  int size;
  MPI_Type_size(MPI_DOUBLE, &size);
}
void pack_double() {
  int position = 0;
  MPI_Pack(&value_out, 1, MPI_DOUBLE, packed, sizeof packed, &position, MPI_COMM_WORLD);
}
void test_null() {
  MPI_Request request = MPI_REQUEST_NULL;
  int flag;
  MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
}
void send_proc_null() { MPI_Send(&value_out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD); }
void recv_proc_null() { MPI_Recv(&value_in, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
void self_message() {
  MPI_Request requests[2];
  MPI_Irecv(&value_in, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, &requests[0]);
  MPI_Isend(&value_out, 1, MPI_DOUBLE, 0, 0, MPI_COMM_SELF, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}
/// A message that never comes.
MPI_Request pending = MPI_REQUEST_NULL;
void test_pending() {
  int flag;
  MPI_Test(&pending, &flag, MPI_STATUS_IGNORE);
}
void iprobe_nothing() {
  int flag;
  MPI_Iprobe(0, 1, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
}

void allgather() { MPI_Allgather(&value_out, 1, MPI_DOUBLE, &value_in, 1, MPI_DOUBLE, MPI_COMM_SELF); }
constexpr int one = 1, nowhere = 0;
void alltoallv() {
  MPI_Alltoallv(&value_out, &one, &nowhere, MPI_DOUBLE, &value_in, &one, &nowhere, MPI_DOUBLE, MPI_COMM_SELF);
}
const MPI_Datatype plain = MPI_DOUBLE;
void alltoallw() {
  MPI_Alltoallw(&value_out, &one, &nowhere, &plain, &value_in, &one, &nowhere, &plain, MPI_COMM_SELF);
}

struct Case {
  const char* name;
  int calls;  ///< MPI calls in the group
  void (*run)();
};
constexpr Case cases[] = {
    {"Comm_rank (not intercepted)", 1, comm_rank},
    {"Type_size (not intercepted)", 1, type_size},
    {"Pack 1 double", 1, pack_double},
    {"Test of a null request", 1, test_null},
    {"Send to PROC_NULL", 1, send_proc_null},
    {"Recv from PROC_NULL", 1, recv_proc_null},
    {"Irecv + Isend + Waitall to self", 3, self_message},
    {"Test of a pending receive", 1, test_pending},
    {"Iprobe that finds nothing", 1, iprobe_nothing},
    {"Allgather of one rank", 1, allgather},
    {"Alltoallv of one rank", 1, alltoallv},
    {"Alltoallw of one rank", 1, alltoallw},
};

double median_ns(void (*run)()) {
  constexpr int samples = 41, repeats = 20000;
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) run();
  for (int s = 0; s < samples; ++s) {
    const double start = MPI_Wtime();
    for (int i = 0; i < repeats; ++i) run();
    seconds.push_back((MPI_Wtime() - start) / repeats);
  }
  return bestride::median_of(seconds) * 1e9;
}

}  // namespace

int main(int argc, char** argv) {
  const auto begin = std::chrono::steady_clock::now();
  MPI_Init(&argc, &argv);
  const auto initialized = std::chrono::steady_clock::now();
  MPI_Irecv(&value_in, 1, MPI_DOUBLE, 0, 1, MPI_COMM_SELF, &pending);
  int status = 0;
  const bool starts = argc == 2 && std::strcmp(argv[1], "start") == 0;
  if (argc == 2 && std::strcmp(argv[1], "time") == 0) {
    for (const Case& one : cases)
      std::printf("{\"case\":\"%s\",\"calls\":%d,\"ns\":%.2f}\n", one.name, one.calls, median_ns(one.run));
  } else if (argc == 4 && std::strcmp(argv[1], "count") == 0 &&
             std::atoi(argv[2]) < static_cast<int>(std::size(cases))) {
    for (long i = std::atol(argv[3]); i > 0; --i) cases[std::atoi(argv[2])].run();
  } else if (argc == 2 && std::strcmp(argv[1], "list") == 0) {
    for (const Case& one : cases) std::printf("{\"case\":\"%s\",\"calls\":%d}\n", one.name, one.calls);
  } else if (!starts) {
    std::fprintf(stderr, "usage: call_overhead time | list | count CASE N | start\n");
    status = 2;
  }
  MPI_Cancel(&pending);
  MPI_Wait(&pending, MPI_STATUS_IGNORE);
  const auto finalizing = std::chrono::steady_clock::now();
  MPI_Finalize();
  const std::chrono::duration<double, std::nano> init = initialized - begin,
                                                 finalize = std::chrono::steady_clock::now() - finalizing;
  if (starts) std::printf("{\"init\":%.0f,\"finalize\":%.0f}\n", init.count(), finalize.count());
  return status;
}
