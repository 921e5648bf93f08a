// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures one field of LinkCosts between the first two nodes of a job, or within its nodes.
#include "perfmodel/collective_measurements.hpp"
#include "perfmodel/measure/job_place.hpp"

namespace bestride {

/// Seconds, or seconds a byte; 0 where there is nothing to measure (one rank a node does not wait for others) or it drowned in noise. Collective over
/// MPI_COMM_WORLD, the same on all ranks. `limit`: seconds it may take, roughly. At least two nodes.
double measure_link(const LinkField& field, const JobPlace& place, double limit);

}  // namespace bestride
