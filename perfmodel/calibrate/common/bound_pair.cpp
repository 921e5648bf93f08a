// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/bound_pair.hpp"

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "base/launcher_rank.hpp"
#include "model/processor_groups.hpp"
#include "model/processors.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr std::size_t most_processors = std::size_t{1} << 16;

bool bind_to(const std::vector<int>& processors) {
  std::vector<cpu_set_t> set(most_processors / CPU_SETSIZE);
  const std::size_t bytes = set.size() * sizeof(cpu_set_t);
  for (const int processor : processors) CPU_SET_S(static_cast<std::size_t>(processor), bytes, set.data());
  return sched_setaffinity(0, bytes, set.data()) == 0;
}

/// The processors that the job may use, also those that its launcher did not bind this rank to: from the set of all
/// processors, the kernel removes those that are not allowed.
std::vector<int> processors_of_job() {
  std::vector<int> all(most_processors);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  bind_to(all);
  return allowed_processors();
}

}  // namespace

Result<bool> bind_at(Distance near) try {
  const int rank = launcher_rank();
  if (rank < 0) return Error{"the launcher does not tell a process its rank before MPI_Init"};
  const std::optional<std::pair<int, int>> pair = processors_at(near, processors_of_job());
  if (!pair) return false;
  if (!bind_to({rank == 0 ? pair->first : pair->second}))
    return Error{std::string("sched_setaffinity: ") + std::strerror(errno)};
  return true;
} catch (const std::bad_alloc&) {
  return Error{"out of memory"};
}

}  // namespace bestride::inline perfmodel
