// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures one field of LinkCosts between the first two nodes of a job, or within its nodes.
#include "perfmodel/calibrate/common/job_topology.hpp"
#include "perfmodel/collective/measurements.hpp"

namespace bestride::inline perfmodel {

/// Returns seconds, or seconds per byte; 0 if there is nothing to measure (one rank on a node waits for no other) or if
/// the value is below the noise. Collective over MPI_COMM_WORLD; all ranks get the same result. `limit`: approximate
/// duration in seconds. Needs at least two nodes.
double measure_link(const LinkField& field, const JobTopology& place, double limit);

}  // namespace bestride::inline perfmodel
