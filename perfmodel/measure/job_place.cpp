// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/measure/job_place.hpp"

#include <sched.h>

#include <vector>

namespace bestride {

JobPlace find_place() {
  JobPlace place;
  int ranks = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &place.rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &place.node);
  int lowest = place.rank;
  PMPI_Bcast(&lowest, 1, MPI_INT, 0, place.node);
  std::vector<int> identities(static_cast<std::size_t>(ranks));
  PMPI_Allgather(&lowest, 1, MPI_INT, identities.data(), 1, MPI_INT, MPI_COMM_WORLD);
  place.topology = Topology(identities);
  return place;
}

void finish(int count, MPI_Request* requests) {
  for (int all = 0;;) {
    PMPI_Testall(count, requests, &all, MPI_STATUSES_IGNORE);
    if (all) return;
    ::sched_yield();
  }
}

void meet() {
  MPI_Request request;
  PMPI_Ibarrier(MPI_COMM_WORLD, &request);
  finish(1, &request);
}

double largest(double value) {
  MPI_Request request;
  PMPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
  finish(1, &request);
  return value;
}

}  // namespace bestride
