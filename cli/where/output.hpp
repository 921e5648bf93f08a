// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two forms of the output of `bestride where`.
#include <span>
#include <string>
#include <vector>

#include "cli/where/call_site.hpp"
#include "cli/where/job_stacks.hpp"
#include "cli/where/job_view.hpp"

namespace bestride::inline cli {

struct WhereText {
  std::size_t calls = 0;  ///< finished calls of each rank that are printed
  bool colour = false;
  std::span<const JobStacks> stacks = {};  ///< of each view; empty if not asked for. Not owned
};

/// About 40 lines for any number of jobs and ranks, unless finished calls or stacks are asked for.
std::string where_text(const std::vector<JobView>& views, const WhereText& options);
/// docs/where.md describes the members. `stacks`: of each view, or empty.
std::string where_json(const std::vector<JobView>& views, std::size_t calls, std::span<const JobStacks> stacks);

}  // namespace bestride::inline cli
