// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/job_topology.hpp"

#include <sched.h>
#include <unistd.h>

#include <vector>

#include "base/profiling_names.hpp"  // after mpi.h

namespace bestride::inline perfmodel {

JobTopology find_job_topology() {
  JobTopology place;
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

int JobTopology::across(int streams) const noexcept {
  if (my_node() > 1 || my_local_rank() >= streams) return -1;
  return topology.ranks_on(1 - my_node())[static_cast<std::size_t>(my_local_rank())];
}

void wait_all(int count, MPI_Request* requests) {
  for (int all = 0;;) {
    PMPI_Testall(count, requests, &all, MPI_STATUSES_IGNORE);
    if (all) return;
    yield_processor();
  }
}

void yield_processor() { ::sched_yield(); }

void yielding_barrier(bool idle) {
  MPI_Request request;
  PMPI_Ibarrier(MPI_COMM_WORLD, &request);
  if (!idle) return wait_all(1, &request);
  for (int all = 0; !all; ::usleep(500)) PMPI_Test(&request, &all, MPI_STATUS_IGNORE);
}

double largest_of_all_ranks(double value) {
  MPI_Request request;
  PMPI_Iallreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
  wait_all(1, &request);
  return value;
}

}  // namespace bestride::inline perfmodel
