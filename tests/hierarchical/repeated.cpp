// SPDX-License-Identifier: Apache-2.0
// Repeats an allgather in all its forms, then once with a changed number. Every repetition gives the bits of the first
// one, and the change arrives. The caller counts the bytes on the wire.
//   repeated COUNT REPETITIONS    COUNT: floats of each rank
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/profiling_names.hpp"  // after mpi.h

namespace {

using Numbers = std::vector<float>;

/// Forms: blocking, in place, nonblocking, or from every second float.
void gather(int form, const Numbers& own, Numbers& all, int rank) {
  const int count = static_cast<int>(own.size());
  std::fill(all.begin(), all.end(), -1.0f);
  if (form == 0) MPI_Allgather(own.data(), count, MPI_FLOAT, all.data(), count, MPI_FLOAT, MPI_COMM_WORLD);
  if (form == 1) {
    std::copy(own.begin(), own.end(), all.begin() + rank * count);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_FLOAT, all.data(), count, MPI_FLOAT, MPI_COMM_WORLD);
  }
  if (form == 2) {
    MPI_Request request;
    MPI_Iallgather(own.data(), count, MPI_FLOAT, all.data(), count, MPI_FLOAT, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  if (form == 3) {
    Numbers spread(2 * own.size());
    for (std::size_t i = 0; i < own.size(); ++i) spread[2 * i] = own[i];
    MPI_Datatype every_second;
    MPI_Type_vector(count, 1, 2, MPI_FLOAT, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Allgather(spread.data(), 1, every_second, all.data(), count, MPI_FLOAT, MPI_COMM_WORLD);
    MPI_Type_free(&every_second);
  }
}

bool same(const Numbers& a, const Numbers& b) { return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0; }

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int count = std::atoi(argv[1]), repetitions = std::atoi(argv[2]);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Numbers own(static_cast<std::size_t>(count)), first(own.size() * static_cast<std::size_t>(ranks)),
      again(first.size());
  for (int i = 0; i < count; ++i)
    own[static_cast<std::size_t>(i)] = static_cast<float>((i * 37 + rank * 101 + i / 7 * 13) % 401 - 200) / 64;
  gather(0, own, first, rank);
  int bad = 0;
  for (int i = 0; i < repetitions; ++i) {
    gather(i % 4, own, again, rank);
    if (!same(again, first)) bad = 1;
  }
  if (rank == ranks - 1) own[0] = 1000;
  gather(0, own, again, rank);
  if (again[static_cast<std::size_t>((ranks - 1) * count)] != 1000.0f) bad = 1;
  if (bad) std::fprintf(stderr, "rank %d: the bits differ from those of the first call\n", rank);
  int any = 0;
  PMPI_Allreduce(&bad, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return any;
}
