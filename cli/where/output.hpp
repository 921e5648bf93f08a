// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text that `bestride where` prints.
#include <string>
#include <vector>

#include "cli/job/call_site.hpp"
#include "cli/job/job_view.hpp"

namespace bestride::inline cli {

struct WhereText {
  std::size_t calls = 0;  ///< finished calls of each rank that are printed
  bool colour = false;
};

/// About 40 lines for any number of jobs and ranks, unless finished calls are asked for.
std::string where_text(const std::vector<JobView>& views, const WhereText& options);

}  // namespace bestride::inline cli
