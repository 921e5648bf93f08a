// SPDX-License-Identifier: Apache-2.0
#pragma once
// The few lines that say who holds up a job.
#include <string>
#include <vector>

#include "cli/job/job_view.hpp"

namespace bestride::inline cli {

struct VerdictLine {
  std::string text;
  bool alarming = false;
};

/// Who holds up the job, in at most ten lines, the most important ones first.
std::vector<VerdictLine> verdict(const JobView& view);

}  // namespace bestride::inline cli
