// SPDX-License-Identifier: Apache-2.0
#pragma once
// The verdict as JSON. docs/watch.md describes the members.
#include <string>

#include "cli/job/job_stacks.hpp"
#include "cli/watch/watched_job.hpp"

namespace bestride::inline cli {

/// What watching costs, in shares of one core.
struct WatchCost {
  double watcher = 0;    ///< this process
  double recording = 0;  ///< of the rank that records most: calls times the cost of recording one that it measured
};
/// `seconds`: since the launcher was started.
WatchCost watch_cost(const WatchedJob& job, double seconds);

/// `seconds`: since the launcher was started. `exit_code`: of the launcher; -1: it still runs. `stacks`: of the job
/// when the last finding was made, or null.
std::string verdict_json(const WatchedJob& job, double seconds, int exit_code, const JobStacks* stacks);

}  // namespace bestride::inline cli
