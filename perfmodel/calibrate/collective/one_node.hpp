// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures collectives of ranks on one host: each through the preload library, which carries out all of them in shared
// memory (restart_preloaded()), and by the MPI library's own functions, in turns.
#include "perfmodel/calibrate/common/job_topology.hpp"
#include "perfmodel/calibrate/common/options.hpp"

namespace bestride::inline perfmodel {

/// Collective over MPI_COMM_WORLD. Prints the event `one-node` for each point, or `no-one-node` with the reason why
/// nothing can be measured: the ranks are on several hosts, too few, more than their processors, or not preloaded.
/// Points after the time limit are left out, long ones first.
void measure_one_node(const MeasureOptions& options, const JobTopology& place);

}  // namespace bestride::inline perfmodel
