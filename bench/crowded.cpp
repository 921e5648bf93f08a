// SPDX-License-Identifier: Apache-2.0
// crowded [--calls N]: time per round of patterns in which ranks wait for each other, for more ranks than processors.
// Prints a line for each: name, bytes of a message, compute time of a rank per round, time per round; times in seconds.
//
// A round is timed as a part of the whole loop, with all its waits: what an application sees. compute() uses processor
// time of this thread, so the lower limit of a round is compute time times ranks over processors.
#include <mpi.h>

#include <cstdio>
#include <vector>

#include "bench/compute.hpp"
#include "bench/options.hpp"

namespace {

int rank = 0, size = 0;

std::vector<char> out[2], in[2];

void neighbors(int bytes) {
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Request requests[4];
  MPI_Irecv(in[0].data(), bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(in[1].data(), bytes, MPI_BYTE, right, 1, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(out[0].data(), bytes, MPI_BYTE, right, 0, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(out[1].data(), bytes, MPI_BYTE, left, 1, MPI_COMM_WORLD, &requests[3]);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

void token(int bytes) {
  if (rank != 0) MPI_Recv(in[0].data(), bytes, MPI_BYTE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(out[0].data(), bytes, MPI_BYTE, (rank + 1) % size, 0, MPI_COMM_WORLD);
  if (rank == 0) MPI_Recv(in[0].data(), bytes, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void tasks(int bytes) {
  if (rank != 0) {
    MPI_Send(out[0].data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    MPI_Recv(in[0].data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  for (int left = size - 1; left > 0; --left) {
    MPI_Status status;
    MPI_Recv(in[0].data(), bytes, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
    MPI_Send(out[0].data(), bytes, MPI_BYTE, status.MPI_SOURCE, 0, MPI_COMM_WORLD);
  }
}

void barrier(int) { MPI_Barrier(MPI_COMM_WORLD); }

void allreduce(int bytes) {
  MPI_Allreduce(out[0].data(), in[0].data(), bytes / 8, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

void duplicate(int) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int calls = 100;
  bench::apply_or_exit(argc, argv, {{"--calls", command_line::whole(calls, 1, 1 << 30)}});
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  struct Pattern {
    const char* name;
    void (*round)(int bytes);
    int bytes;
    double compute;
  };
  const Pattern patterns[] = {
      {"neighbors", neighbors, 1024, 0},     {"neighbors", neighbors, 65536, 0},
      {"neighbors", neighbors, 1024, 5e-4},  {"neighbors", neighbors, 65536, 5e-4},
      {"neighbors", neighbors, 65536, 5e-3}, {"token", token, 1024, 0},
      {"tasks", tasks, 1024, 5e-4},          {"barrier", barrier, 0, 0},
      {"barrier", barrier, 0, 5e-4},         {"allreduce", allreduce, 8, 0},
      {"allreduce", allreduce, 65536, 0},    {"allreduce", allreduce, 8, 5e-4},
      {"duplicate", duplicate, 0, 0},
  };
  for (std::vector<char>* buffer : {&out[0], &out[1], &in[0], &in[1]}) buffer->assign(65536, 0);
  for (const Pattern& pattern : patterns) {
    pattern.round(pattern.bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int call = 0; call < calls; ++call) {
      if (pattern.compute > 0 && !(pattern.round == tasks && rank == 0)) bench::compute(pattern.compute);
      pattern.round(pattern.bytes);
    }
    const double own = (MPI_Wtime() - begin) / calls;
    double longest = 0;
    MPI_Reduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("%s %d %g %.9f\n", pattern.name, pattern.bytes, pattern.compute, longest);
  }
  MPI_Finalize();
  return 0;
}
