// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ranks of a job from one observation to the next: what was read here, what agents have sent, and the rest as it
// was.
#include <optional>
#include <string>
#include <vector>

#include "cli/job/job_view.hpp"

namespace bestride::inline cli {

/// What the agent on a host has told since the last observation.
struct HostUpdate {
  std::string host;
  double unheard = 0;  ///< as RankSnapshot::unheard, of all ranks there
  /// All ranks there, which may be partial snapshots. None: it has not answered.
  std::optional<std::vector<RankSnapshot>> ranks;
};

struct UpdatedRanks {
  std::vector<RankSnapshot> ranks;   ///< by rank, host and pid
  std::vector<Activity> activities;  ///< of each, since the last observation
};

/// `before`: the ranks of the last observation, from which is taken what was not sent again. `local`: of this host.
UpdatedRanks update_ranks(std::vector<RankSnapshot> before, std::vector<RankSnapshot> local,
                          std::vector<HostUpdate> hosts);

}  // namespace bestride::inline cli
