// SPDX-License-Identifier: Apache-2.0
#include "base/launcher_rank.hpp"

#include <cstdlib>

namespace bestride {
namespace {

/// Of the first of these variables that begins with a digit; -1 if none does.
template <class Names>
int number_in(const Names& names) noexcept {
  for (const char* name : names)
    if (const int number = launcher_number(std::getenv(name)); number >= 0) return number;
  return -1;
}
constexpr const char* local_rank_variables[] = {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID",
                                                "SLURM_LOCALID"};
constexpr const char* size_variables[] = {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"};

}  // namespace

int launcher_number(const char* value) noexcept {
  if (!value || *value < '0' || *value > '9') return -1;
  int number = 0;  // not by strtol, whose symbol differs between versions of glibc
  for (const char* c = value; *c >= '0' && *c <= '9' && number < 100'000'000; ++c) number = 10 * number + (*c - '0');
  return number;
}

int launcher_rank() noexcept { return number_in(launcher_rank_variables); }

int launcher_local_rank() noexcept { return number_in(local_rank_variables); }

int launcher_size() noexcept {
  const int size = number_in(size_variables);
  return size > 0 ? size : 0;
}

}  // namespace bestride
