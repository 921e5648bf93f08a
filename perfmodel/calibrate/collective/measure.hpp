// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures links and collectives between hosts with all ranks of a job. All functions are collective over
// MPI_COMM_WORLD; they measure nothing if all ranks are on one host.
#include <string>

#include "perfmodel/calibrate/common/job_topology.hpp"
#include "perfmodel/calibrate/common/options.hpp"

namespace bestride::inline perfmodel {

/// The links, or the variants of each collective. Throws if the state file can't be written.
void measure_collectives(const MeasureOptions& options, const JobTopology& place, const std::string& configuration);

/// An exchange between nodes, several times, or which NICs could be rails.
void measure_exchange(const MeasureOptions& options, const JobTopology& place);

}  // namespace bestride::inline perfmodel
