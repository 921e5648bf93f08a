// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text that `bestride where` prints.
#include <span>
#include <string>
#include <vector>

#include "cli/job/call_site.hpp"
#include "cli/job/job_stacks.hpp"
#include "cli/job/job_view.hpp"

namespace bestride::inline cli {

struct WhereText {
  std::size_t calls = 0;  ///< finished calls of each rank that are printed
  bool color = false;
  std::span<const JobStacks> stacks = {};  ///< of each view; empty if not asked for. Not owned
};

/// About 40 lines for any number of jobs and ranks, unless finished calls or stacks are asked for.
std::string where_text(const std::vector<JobView>& views, const WhereText& options);

}  // namespace bestride::inline cli
