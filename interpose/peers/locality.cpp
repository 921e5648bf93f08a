// SPDX-License-Identifier: Apache-2.0
#include "interpose/peers/locality.hpp"

#include <cstdlib>
#include <cstring>
#include <limits>

namespace bestride::inline interpose {
namespace {

/// -1 if the variable is missing or not a number. "4(x2)" (Slurm) is read as 4.
int number(const char* name) noexcept {
  const char* text = std::getenv(name);
  if (!text || *text < '0' || *text > '9') return -1;
  return std::atoi(text);
}

}  // namespace

Locality Locality::from_environment(int rank, int ranks) noexcept {
  Locality here;
  here.rank = rank;
  here.ranks = ranks;
  struct Launcher {
    const char* local_rank;
    const char* local_ranks;
  };
  constexpr Launcher launchers[] = {
      {"MPI_LOCALRANKID", "MPI_LOCALNRANKS"},  // Hydra: MPICH, Intel MPI, MVAPICH
      {"OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"PALS_LOCAL_RANKID", "PALS_LOCAL_SIZE"},
      {"SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
  };
  for (const Launcher& launcher : launchers) {
    const int local_rank = number(launcher.local_rank);
    const int local_ranks = number(launcher.local_ranks);
    if (local_rank < 0 || local_ranks <= local_rank || local_ranks > ranks) continue;
    here.local_rank = local_rank;
    here.local_ranks = local_ranks;
    break;
  }
  const char* dealing = std::getenv("SLURM_DISTRIBUTION");
  here.dealt = dealing && std::strncmp(dealing, "cyclic", 6) == 0;
  return here;
}

int ranks_of_job() noexcept {
  for (const char* name : {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"})
    if (const char* text = std::getenv(name); text && std::atoi(text) > 0) return std::atoi(text);
  return 0;
}

bool launched_on_one_host() noexcept {
  const int ranks = ranks_of_job();
  return ranks > 0 && Locality::from_environment(0, std::numeric_limits<int>::max()).local_ranks == ranks;
}

bool simulated_nodes() noexcept {
  for (const char* name : {"MPIR_CVAR_NUM_CLIQUES", "MPIR_CVAR_ODD_EVEN_CLIQUES"})
    if (const char* text = std::getenv(name); text && *text) return true;
  return false;
}

Distance Locality::to(int world_rank) const noexcept {
  if (world_rank == rank) return Distance::self;
  if (one_host()) return Distance::node;
  if (local_ranks == 0 || world_rank < 0) return Distance::network;
  if (dealt) {
    const int hosts = (ranks + local_ranks - 1) / local_ranks;
    return world_rank % hosts == rank % hosts ? Distance::node : Distance::network;
  }
  const int first = rank - local_rank;
  return world_rank >= first && world_rank < first + local_ranks ? Distance::node : Distance::network;
}

}  // namespace bestride::inline interpose
