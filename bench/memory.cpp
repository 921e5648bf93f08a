// SPDX-License-Identifier: Apache-2.0
// memory: the memory of each rank, one JSON line for each rank and stage, from /proc/self/smaps_rollup while all ranks
// are alive. `start`: after MPI_Init and a barrier. `used`: after messages and collectives of a derived datatype and of
// integers between all ranks. Plain MPI.
#include <mpi.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

/// KiB: in proportion (shared pages divided by the number of processes that map them), and pages of this process alone.
struct Memory {
  long proportional = 0, own = 0;
};

Memory memory() {
  Memory found;
  std::ifstream rollup("/proc/self/smaps_rollup");
  std::string name;
  for (long value = 0; rollup >> name;) {
    if (name == "Pss:" || name == "Private_Clean:" || name == "Private_Dirty:") {
      rollup >> value;
      (name == "Pss:" ? found.proportional : found.own) += value;
    }
    rollup.ignore(1 << 10, '\n');
  }
  return found;
}

void report(const char* stage, int rank) {
  MPI_Barrier(MPI_COMM_WORLD);
  const Memory now = memory();
  // Nobody leaves before all have read theirs.
  MPI_Barrier(MPI_COMM_WORLD);
  std::printf("{\"stage\": \"%s\", \"rank\": %d, \"proportional_kib\": %ld, \"own_kib\": %ld}\n", stage, rank,
              now.proportional, now.own);
  std::fflush(stdout);
}

void use(int rank, int ranks) {
  MPI_Datatype columns;
  MPI_Type_vector(1024, 2, 8, MPI_DOUBLE, &columns);
  MPI_Type_commit(&columns);
  std::vector<double> sent(8192, 1), received(8192);
  for (int i = 0; i < 10; ++i)
    MPI_Sendrecv(sent.data(), 1, columns, (rank + 1) % ranks, 0, received.data(), 1, columns,
                 (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  std::vector<int> numbers(4096, rank), sums(4096);
  for (int i = 0; i < 10; ++i) MPI_Allreduce(numbers.data(), sums.data(), 4096, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Type_free(&columns);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  report("start", rank);
  use(rank, ranks);
  report("used", rank);
  MPI_Finalize();
}
