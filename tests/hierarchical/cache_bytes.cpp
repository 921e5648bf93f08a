// SPDX-License-Identifier: Apache-2.0
// The allgather caches of all communicators of a node stay within BESTRIDE_CACHE_BYTES, whichever ranks they have. A
// rank is charged its share of a shared mapping: the size divided by the number of ranks that share it.
//   cache_bytes LIMIT COMMUNICATORS
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/profiling_names.hpp"  // after mpi.h
#include "tests/hierarchical/job.hpp"

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const long long limit = std::atoll(argv[1]);
  const int count = std::atoi(argv[2]);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  // Two ranks per node in block placement (0011). The halves have one rank per node, so their memory is not shared.
  double mine = 0;
  std::vector<MPI_Comm> comms;
  for (int i = 0; i < count; ++i) {
    MPI_Comm comm = MPI_COMM_WORLD;
    if (i % 2)
      MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &comm);
    else if (i > 0)
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int size = 0;
    MPI_Comm_size(comm, &size);
    const long long before = bestride::test::mapped_bytes();
    std::vector<long> given(20000, rank), all(given.size() * static_cast<std::size_t>(size));
    for (int again = 0; again < 2; ++again)
      MPI_Allgather(given.data(), 20000, MPI_LONG, all.data(), 20000, MPI_LONG, comm);
    mine += static_cast<double>(bestride::test::mapped_bytes() - before) / (i % 2 ? 1 : 2);
    if (i > 0) comms.push_back(comm);
  }
  double node[2] = {0, 0}, most = 0;
  node[rank * 2 / ranks] = mine;
  double both[2];
  PMPI_Allreduce(node, both, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  most = both[0] > both[1] ? both[0] : both[1];
  int bad = 0;
  // The memory of the channels is counted, too; a tenth of the limit allows for it.
  if (most > 1.1 * static_cast<double>(limit) || most < 0.5 * static_cast<double>(limit)) {
    bad = 1;
    if (rank == 0) std::printf("a node uses %.0f bytes of %lld\n", most, limit);
  }
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  MPI_Finalize();
  return bad;
}
