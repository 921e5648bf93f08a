// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace bestride::inline interpose {

/// What the launcher calls this job, the same on all its hosts: the name of Hydra's key-value space, or
/// "slurm-<job>.<step>". "" if it is not known. Before MPI_Init.
std::string launch_name();

}  // namespace bestride::inline interpose
