// SPDX-License-Identifier: Apache-2.0
#pragma once
// Points that all ranks of a job measure together.
#include "perfmodel/calibrate/common/point_run.hpp"

namespace bestride::inline perfmodel {

/// Collective over MPI_COMM_WORLD. Rank 0 chooses each point by its `run`; all other ranks pass null. Throws
/// if a point can't be measured.
void measure_together(PointSet& points, PointRun* run);

}  // namespace bestride::inline perfmodel
