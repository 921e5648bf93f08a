// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace bestride {

/// The rank in MPI_COMM_WORLD that the launcher gave this process in its environment, or -1. Valid before MPI_Init.
/// Known: Hydra (PMI_RANK), PMIx and Open MPI (PMIX_RANK), Slurm (SLURM_PROCID). Thread-safe.
int launcher_rank() noexcept;
/// The rank among those of this host in the same way, or -1. Known: Hydra (MPI_LOCALRANKID), Open MPI
/// (OMPI_COMM_WORLD_LOCAL_RANK), PALS (PALS_LOCAL_RANKID), Slurm (SLURM_LOCALID).
int launcher_local_rank() noexcept;
/// The number of ranks in MPI_COMM_WORLD in the same way, or 0. Known: Hydra (PMI_SIZE), Open MPI
/// (OMPI_COMM_WORLD_SIZE), Slurm (SLURM_STEP_NUM_TASKS).
int launcher_size() noexcept;

/// The value of a variable in `environment`, which is as in /proc/PID/environ, "NAME=value" with '\0' after each; "" if
/// there is none.
std::string_view variable_in(std::string_view environment, std::string_view name) noexcept;
/// launcher_rank() of the process with this environment.
int launcher_rank_in(std::string_view environment) noexcept;
/// The number of ranks of its MPI_COMM_WORLD on its host, or 0. Known: Hydra (MPI_LOCALNRANKS), Open MPI
/// (OMPI_COMM_WORLD_LOCAL_SIZE), Slurm if the step has one node (SLURM_STEP_NUM_NODES).
int launcher_local_size_in(std::string_view environment) noexcept;

}  // namespace bestride
