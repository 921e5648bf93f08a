// SPDX-License-Identifier: Apache-2.0
#include "interpose/peers/processors.hpp"

#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {

int processors_of_ranks(bool all_ranks) noexcept {
  cpu_set_t own, all;
  CPU_ZERO(&own);
  CPU_ZERO(&all);
  const bool known = sched_getaffinity(0, sizeof own, &own) == 0;
  if (!all_ranks) return known && CPU_COUNT(&own) >= sysconf(_SC_NPROCESSORS_ONLN) ? CPU_COUNT(&own) : 0;
  if (real.Allreduce(&own, &all, sizeof all, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD) != MPI_SUCCESS) return 0;
  return CPU_COUNT(&all);
}

}  // namespace bestride::inline interpose
