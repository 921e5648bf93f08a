// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/joint_points.hpp"

#include <mpi.h>

#include <stdexcept>

#include "base/profiling_names.hpp"  // after mpi.h

namespace bestride::inline perfmodel {
namespace {

constexpr int no_more_points = -1;

/// The point that rank 0 chose, on all ranks.
int broadcast_point(int i) {
  PMPI_Bcast(&i, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return i;
}

}  // namespace

void measure_together(PointSet& points, PointRun* run) {
  if (run) {
    const std::string error = run->measure(points, 1, [](std::size_t i) { broadcast_point(static_cast<int>(i)); });
    if (!error.empty()) throw std::runtime_error(error);
    broadcast_point(no_more_points);
    return;
  }
  for (int i; (i = broadcast_point(no_more_points)) != no_more_points;)
    (void)points.measure(static_cast<std::size_t>(i), nullptr);
}

}  // namespace bestride::inline perfmodel
