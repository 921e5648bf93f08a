// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ranks of a job that have no record yet, while the others are in MPI_Init: found by the environment that the launcher
// has given their processes.
#include <cstdint>
#include <vector>

#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

struct AbsentRanks {
  /// Their processes on this host, which run, with RankSnapshot::unrecorded. By rank, ascending.
  std::vector<RankSnapshot> processes;
  /// Ranks that have no process any more, ascending. Known only if all ranks of the job are on this host.
  std::vector<std::int32_t> ended;
};

/// `ranks`: those of a job that have records. Empty unless all of them are in MPI_Init and are fewer than the launcher
/// has started, and some of them are visible here. Reads the environment of each process of this user, about 20 us for
/// one.
AbsentRanks find_absent_ranks(const std::vector<RankSnapshot>& ranks);

}  // namespace bestride::inline telemetry
