// SPDX-License-Identifier: Apache-2.0
// waits [--seconds S] [--only NAME,...]: collectives of one node in which ranks wait for each other, with ranks in step
// and out of step. Prints a line for each case: name, bytes, skew, time per round; times in seconds.
//
// Out of step: before each call, one time in ten, a rank computes for the time "skew", each rank by its own random
// numbers. A round is timed as a part of the whole loop, so the time includes the computation.
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/compute.hpp"
#include "bench/options.hpp"

namespace {

int rank = 0;
std::vector<char> own, all;

void allreduce(int bytes) { MPI_Allreduce(own.data(), all.data(), bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
void bcast(int bytes) { MPI_Bcast(own.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
void gather(int bytes) { MPI_Gather(own.data(), bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
void scatter(int bytes) { MPI_Scatter(all.data(), bytes, MPI_BYTE, own.data(), bytes, MPI_BYTE, 0, MPI_COMM_WORLD); }
void reduce(int bytes) { MPI_Reduce(own.data(), all.data(), bytes / 4, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD); }
void alltoall(int bytes) {
  MPI_Alltoall(all.data(), bytes, MPI_BYTE, all.data() + all.size() / 2, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double seconds = 0.2;
  bench::Only only;
  bench::apply_or_exit(argc, argv, {{"--seconds", command_line::number(seconds, 0, 3600)}, {"--only", only.setter()}});
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  struct Case {
    const char* name;
    void (*call)(int bytes);
    int bytes;
    double skew;
  };
  constexpr Case cases[] = {
      {"allreduce", allreduce, 16000, 0}, {"bcast", bcast, 16000, 0},           {"alltoall", alltoall, 16000, 0},
      {"bcast", bcast, 8192, 1e-5},       {"bcast", bcast, 8192, 1e-4},         {"bcast", bcast, 8192, 5e-4},
      {"bcast", bcast, 8192, 1e-3},       {"gather", gather, 8192, 5e-4},       {"scatter", scatter, 8192, 5e-4},
      {"reduce", reduce, 8192, 1e-5},     {"reduce", reduce, 8192, 1e-4},       {"reduce", reduce, 8192, 5e-4},
      {"reduce", reduce, 8192, 1e-3},     {"allreduce", allreduce, 8192, 5e-4},
  };
  own.assign(16384, 0);
  all.assign(static_cast<std::size_t>(2 * 16384 * ranks), 0);
  std::uint32_t random = 77u * static_cast<std::uint32_t>(rank) + 5;
  for (const Case& each : cases) {
    const std::string name = std::string(each.name) + (each.skew > 0 ? "_skewed" : "");
    if (!only.wants(name)) continue;
    for (int call = 0; call < 30; ++call) each.call(each.bytes);
    int rounds = 0;
    double spent = 0;
    for (int more = 1; more;) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      constexpr int batch = 100;
      for (int call = 0; call < batch; ++call) {
        random = random * 1664525u + 1013904223u;
        if (each.skew > 0 && random >> 24 < 26) bench::compute(each.skew);
        each.call(each.bytes);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      spent += MPI_Wtime() - begin;
      rounds += batch;
      more = spent < seconds;
      MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0) std::printf("%s %d %g %.9f\n", name.c_str(), each.bytes, each.skew, spent / rounds);
  }
  MPI_Finalize();
  return 0;
}
