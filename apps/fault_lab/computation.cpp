// SPDX-License-Identifier: Apache-2.0
#include "computation.hpp"

#include <mpi.h>

#include <algorithm>
#include <ctime>

namespace fault_lab {
namespace {

/// CPU time and not elapsed time: other processes on the core do not count.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

std::uint64_t turn(std::uint64_t state, double turns) {
  for (auto left = std::uint64_t(turns); left > 0; --left) state = state * 6364136223846793005 + 1442695040888963407;
  return state;
}

}  // namespace

void Computation::calibrate() {
  constexpr double turns = 1 << 20;
  double best = 0;
  for (int trial = 0; trial < 16; ++trial) {
    const double start = cpu_seconds();
    result_ = turn(result_, turns);
    best = std::max(best, turns / std::max(1e-9, cpu_seconds() - start));
  }
  MPI_Allreduce(&best, &turns_per_second_, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
}

void Computation::run(double seconds) {
  if (seconds > 0) result_ = turn(result_, seconds * turns_per_second_);
}

}  // namespace fault_lab
