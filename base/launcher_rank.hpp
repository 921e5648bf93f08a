// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace bestride {

/// In the order in which they count: of Hydra, of PMIx and Open MPI, of Slurm.
inline constexpr const char* launcher_rank_variables[] = {"PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
/// The number with which the value of such a variable begins; -1: null, or it does not begin with a digit.
int launcher_number(const char* value) noexcept;

/// The rank in MPI_COMM_WORLD that the launcher gave this process in its environment (launcher_rank_variables), or -1.
/// Valid before MPI_Init. Thread-safe.
int launcher_rank() noexcept;
/// The rank among those of this host in the same way, or -1. Known: Hydra (MPI_LOCALRANKID), Open MPI
/// (OMPI_COMM_WORLD_LOCAL_RANK), PALS (PALS_LOCAL_RANKID), Slurm (SLURM_LOCALID).
int launcher_local_rank() noexcept;
/// The number of ranks in MPI_COMM_WORLD in the same way, or 0. Known: Hydra (PMI_SIZE), Open MPI
/// (OMPI_COMM_WORLD_SIZE), Slurm (SLURM_STEP_NUM_TASKS).
int launcher_size() noexcept;

}  // namespace bestride
