// SPDX-License-Identifier: Apache-2.0
#pragma once
// LoneWatch: what an agent does without a head (BESTRIDE_WATCH=1, or the head is gone): it watches the ranks of its
// host by itself. Verdicts go to standard error and into a file of this host.
#include <chrono>
#include <optional>
#include <string>

#include "cli/job/job_stacks.hpp"
#include "cli/watch/watched_job.hpp"

namespace bestride::inline cli {

class LoneWatch {
 public:
  /// `job`: its folder's name; `folder`: for the file bestride-<job>.<host>.verdict.json.
  LoneWatch(const std::string& job, const std::string& folder);

  /// Looks if it is time to, or if a rank has ended.
  void look(bool ended);
  /// Writes what is known after the last rank has ended.
  void finish();
  double next_look() const noexcept { return next_look_; }

 private:
  double seconds() const;
  void observe(JobPhase phase);

  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  WatchedJob job_;
  std::string path_;
  std::optional<JobStacks> stacks_;
  double next_look_ = 0;
};

}  // namespace bestride::inline cli
