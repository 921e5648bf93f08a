// SPDX-License-Identifier: Apache-2.0
// probe ring | placement | transfer BYTES: the program that the test of the test bed runs.
//   ring       a number is passed around all ranks, each adds its rank; rank 0 prints the sum
//   placement  every rank prints "RANK HOST LOCAL_RANK LOCAL_RANKS RAIL", with the local ranks of MPI_Comm_split_type
//   transfer   rank 0 sends BYTES bytes to the last rank, which replies; rank 0 prints the time in seconds
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

int rank = 0, ranks = 0;

void ring() {
  long sum = 0;
  const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
  if (rank == 0) MPI_Send(&sum, 1, MPI_LONG, next, 0, MPI_COMM_WORLD);
  MPI_Recv(&sum, 1, MPI_LONG, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  sum += rank;
  if (rank != 0) MPI_Send(&sum, 1, MPI_LONG, next, 0, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%ld\n", sum);
}

void placement() {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int local_rank = 0, local_ranks = 0;
  MPI_Comm_rank(node, &local_rank);
  MPI_Comm_size(node, &local_ranks);
  MPI_Comm_free(&node);
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  const char* rail = std::getenv("UCX_NET_DEVICES");
  std::printf("%d %s %d %d %s\n", rank, host, local_rank, local_ranks, rail ? rail : "-");
}

void transfer(int bytes) {
  std::vector<char> data(bytes);
  char answer = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  if (rank == 0) {
    MPI_Send(data.data(), bytes, MPI_CHAR, ranks - 1, 0, MPI_COMM_WORLD);
    MPI_Recv(&answer, 1, MPI_CHAR, ranks - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::printf("%.6f\n", MPI_Wtime() - start);
  } else if (rank == ranks - 1) {
    MPI_Recv(data.data(), bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&answer, 1, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  }
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::string what = count > 1 ? arguments[1] : "";
  if (what == "ring")
    ring();
  else if (what == "placement")
    placement();
  else if (what == "transfer" && count > 2)
    transfer(std::atoi(arguments[2]));
  MPI_Finalize();
  return 0;
}
