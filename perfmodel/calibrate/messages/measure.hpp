// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures the curves of a machine profile with two MPI ranks, and a GPU if rank 0 has one.
#include <string>

#include "perfmodel/calibrate/common/job_topology.hpp"
#include "perfmodel/calibrate/common/options.hpp"

namespace bestride::inline perfmodel {

/// Collective over MPI_COMM_WORLD. Throws if the measurement is not possible.
void measure_messages(const MeasureOptions& options, const JobTopology& place, const std::string& configuration);

}  // namespace bestride::inline perfmodel
