// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace bestride {

/// The rank in MPI_COMM_WORLD that the launcher gave this process in its environment, or -1. Valid before MPI_Init.
/// Known: Hydra (PMI_RANK), PMIx and Open MPI (PMIX_RANK), Slurm (SLURM_PROCID). Thread-safe.
int launcher_rank() noexcept;

}  // namespace bestride
