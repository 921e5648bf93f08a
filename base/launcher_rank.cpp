// SPDX-License-Identifier: Apache-2.0
#include "base/launcher_rank.hpp"

#include <cstdlib>
#include <initializer_list>

namespace bestride {
namespace {

/// Of the first of these variables that begins with a digit; -1 if none does.
int number_in(std::initializer_list<const char*> names) noexcept {
  for (const char* name : names) {
    const char* const text = std::getenv(name);
    if (!text || *text < '0' || *text > '9') continue;
    int number = 0;  // not by strtol, whose symbol differs between versions of glibc
    for (const char* c = text; *c >= '0' && *c <= '9' && number < 100'000'000; ++c) number = 10 * number + (*c - '0');
    return number;
  }
  return -1;
}

}  // namespace

int launcher_rank() noexcept { return number_in({"PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}); }

int launcher_local_rank() noexcept {
  return number_in({"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID", "SLURM_LOCALID"});
}

int launcher_size() noexcept {
  const int size = number_in({"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"});
  return size > 0 ? size : 0;
}

}  // namespace bestride
