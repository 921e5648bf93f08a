// SPDX-License-Identifier: Apache-2.0
#include "base/launcher_rank.hpp"

#include <cstdlib>
#include <initializer_list>

namespace bestride {
namespace {

/// Of this process.
struct OwnEnvironment {
  std::string_view operator()(std::string_view name) const noexcept {
    const char* const text = std::getenv(name.data());
    return text ? text : "";
  }
};

/// Of another process.
struct OtherEnvironment {
  std::string_view variables;
  std::string_view operator()(std::string_view name) const noexcept { return variable_in(variables, name); }
};

/// Of the first of these variables that begins with a digit; -1 if none does.
template <class Lookup>
int number_in(const Lookup& value_of, std::initializer_list<const char*> names) noexcept {
  for (const char* name : names) {
    const std::string_view text = value_of(name);
    if (text.empty() || text[0] < '0' || text[0] > '9') continue;
    int number = 0;  // not by strtol, whose symbol differs between versions of glibc
    for (const char c : text) {
      if (c < '0' || c > '9' || number >= 100'000'000) break;
      number = 10 * number + (c - '0');
    }
    return number;
  }
  return -1;
}

template <class Lookup>
int rank_in(const Lookup& value_of) noexcept {
  return number_in(value_of, {"PMI_RANK", "PMIX_RANK", "SLURM_PROCID"});
}

}  // namespace

int launcher_rank() noexcept { return rank_in(OwnEnvironment{}); }

int launcher_local_rank() noexcept {
  return number_in(OwnEnvironment{},
                   {"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PALS_LOCAL_RANKID", "SLURM_LOCALID"});
}

int launcher_size() noexcept {
  const int size = number_in(OwnEnvironment{}, {"PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"});
  return size > 0 ? size : 0;
}

std::string_view variable_in(std::string_view environment, std::string_view name) noexcept {
  for (std::string_view rest = environment; !rest.empty();) {
    const std::size_t end = rest.find('\0');
    std::string_view each{rest.data(), end < rest.size() ? end : rest.size()};
    rest.remove_prefix(each.size() < rest.size() ? each.size() + 1 : rest.size());
    if (each.size() <= name.size() || each[name.size()] != '=' || !each.starts_with(name)) continue;
    each.remove_prefix(name.size() + 1);
    return each;
  }
  return "";
}

int launcher_rank_in(std::string_view environment) noexcept { return rank_in(OtherEnvironment{environment}); }

int launcher_local_size_in(std::string_view environment) noexcept {
  const OtherEnvironment value_of{environment};
  int size = number_in(value_of, {"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE"});
  if (size < 0 && number_in(value_of, {"SLURM_STEP_NUM_NODES"}) == 1)
    size = number_in(value_of, {"SLURM_STEP_NUM_TASKS"});
  return size > 0 ? size : 0;
}

}  // namespace bestride
