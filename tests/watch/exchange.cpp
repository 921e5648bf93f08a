// SPDX-License-Identifier: Apache-2.0
// Each rank exchanges messages with every other one, pair by pair, for some seconds. Arguments: seconds, bytes.
// The number of ranks is a power of two.
#include <mpi.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  std::vector<char> buffer(argc > 2 ? static_cast<std::size_t>(std::atol(argv[2])) : 1 << 18);
  const int bytes = static_cast<int>(buffer.size());
  const double begin = MPI_Wtime();
  for (int go_on = 1; go_on;) {
    for (int distance = 1; distance < size; ++distance) {
      const int peer = rank ^ distance;
      if (rank < peer) {
        MPI_Send(buffer.data(), bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
        MPI_Recv(buffer.data(), bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else {
        MPI_Recv(buffer.data(), bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer.data(), bytes, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
      }
    }
    go_on = MPI_Wtime() - begin < seconds;
    MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  MPI_Finalize();
}
