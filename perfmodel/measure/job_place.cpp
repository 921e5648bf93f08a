// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/measure/job_place.hpp"

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

double largest(double value) {
  PMPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return value;
}

}  // namespace bestride
