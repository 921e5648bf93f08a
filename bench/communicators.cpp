// SPDX-License-Identifier: Apache-2.0
// communicators [--lives N] [--alive N]: communicators that are made, used and freed, and many that live at once.
// Prints "life NAME USES median fastest" and "alive NAME COMMUNICATORS median fastest KIB MAPS": seconds for one life,
// or for one use of one communicator; what the live ones add to rank 0's memory and memory mappings.
//
// A life is the creation, USES collectives of a column of an array, and the end. Each sample is the mean of several
// lives in a row.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/median.hpp"
#include "bench/options.hpp"

namespace {

int rank = 0, size = 0;
MPI_Datatype column;
double from[4096], into[4096];

MPI_Comm made(const char* name) {
  MPI_Comm comm = MPI_COMM_NULL;
  if (std::strcmp(name, "dup") == 0) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  } else if (std::strcmp(name, "split") == 0) {
    MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &comm);
  } else if (std::strcmp(name, "cart") == 0) {
    const int periodic = 1;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &comm);
  } else {
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &left, MPI_UNWEIGHTED, 1, &right, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                   0, &comm);
  }
  return comm;
}

void use(const char* name, MPI_Comm comm) {
  if (std::strcmp(name, "cart") == 0 || std::strcmp(name, "graph") == 0)
    MPI_Neighbor_alltoall(from, 1, column, into, 1, column, comm);
  else
    MPI_Alltoall(from, 1, column, into, 1, column, comm);
}

void print(const char* what, const char* name, int number, const std::vector<double>& samples, const char* rest) {
  if (rank == 0)
    std::printf("%s %s %d %.9g %.9g%s\n", what, name, number, bestride::median_of(samples),
                *std::min_element(samples.begin(), samples.end()), rest);
}

/// Of this process: resident memory in KiB, and mappings.
void memory(long* kib, long* maps) {
  *kib = *maps = 0;
  char line[512];
  if (std::FILE* file = std::fopen("/proc/self/status", "r")) {
    while (std::fgets(line, sizeof line, file)) std::sscanf(line, "VmRSS: %ld", kib);
    std::fclose(file);
  }
  if (std::FILE* file = std::fopen("/proc/self/maps", "r")) {
    while (std::fgets(line, sizeof line, file)) ++*maps;
    std::fclose(file);
  }
}

void lives(int count) {
  constexpr int in_a_row = 10;
  for (const char* name : {"dup", "split", "cart", "graph"})
    for (const int uses : {0, 1, 5, 50}) {
      std::vector<double> samples;
      for (int sample = -2; sample < count / in_a_row; ++sample) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double start = MPI_Wtime();
        for (int life = 0; life < in_a_row; ++life) {
          MPI_Comm comm = made(name);
          for (int i = 0; i < uses; ++i) use(name, comm);
          MPI_Comm_free(&comm);
        }
        if (sample >= 0) samples.push_back((MPI_Wtime() - start) / in_a_row);
      }
      print("life", name, uses, samples, "");
    }
}

/// `rounds` uses of each, in turn: a broadcast, a reduction and an alltoall.
void alive(int count, int rounds) {
  std::vector<MPI_Comm> comms;
  for (int i = 0; i < count; ++i) comms.push_back(made("dup"));
  long kib = 0, maps = 0, kib_after = 0, maps_after = 0;
  memory(&kib, &maps);
  std::vector<double> samples;
  for (int round = 0; round < rounds; ++round) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (MPI_Comm comm : comms) {
      int own = 1, sum = 0;
      MPI_Bcast(from, 1024, MPI_DOUBLE, 0, comm);
      MPI_Allreduce(&own, &sum, 1, MPI_INT, MPI_SUM, comm);
      use("dup", comm);
      if (sum != size) MPI_Abort(MPI_COMM_WORLD, 1);
    }
    samples.push_back((MPI_Wtime() - start) / count);
  }
  memory(&kib_after, &maps_after);
  char rest[80];
  std::snprintf(rest, sizeof rest, " %ld %ld", kib_after - kib, maps_after - maps);
  print("alive", "dup", count, samples, rest);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int life_count = 300, alive_count = 200;
  bench::apply_or_exit(argc, argv,
                       {{"--lives", command_line::whole(life_count, 10, 1 << 30)},
                        {"--alive", command_line::whole(alive_count, 1, 1 << 30)}});
  MPI_Datatype strided;
  MPI_Type_vector(64, 1, 8, MPI_DOUBLE, &strided);
  MPI_Type_create_resized(strided, 0, 8, &column);
  MPI_Type_commit(&column);
  alive(alive_count, 10);
  lives(life_count);
  MPI_Type_free(&strided);
  MPI_Type_free(&column);
  MPI_Finalize();
}
