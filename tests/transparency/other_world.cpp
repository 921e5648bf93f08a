// SPDX-License-Identifier: Apache-2.0
// A program under a tool that gives it another MPI_COMM_WORLD (other_world_tool.c): every collective that the tool
// defines has to reach it.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int count = 4096;
  const auto length = static_cast<std::size_t>(count);
  std::vector<int> own(length), all(length * static_cast<std::size_t>(size));
  for (int call = 0; call < 200; ++call) {
    std::fill(own.begin(), own.end(), 1000 * call + rank);
    if (call % 2) {
      MPI_Allgather(own.data(), count, MPI_INT, all.data(), count, MPI_INT, MPI_COMM_WORLD);
    } else {
      MPI_Request request;
      MPI_Iallgather(own.data(), count, MPI_INT, all.data(), count, MPI_INT, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (int from = 0; from < size; ++from)
      wrong += all[length * static_cast<std::size_t>(from) + length / 2] != 1000 * call + from;
    MPI_Bcast(own.data(), count, MPI_INT, 0, MPI_COMM_WORLD);
    wrong += own[length / 2] != 1000 * call;
  }
  MPI_Finalize();
  if (wrong) std::printf("rank %d: %d wrong results\n", rank, wrong);
  return wrong != 0;
}
