// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/finding_facts.hpp"

namespace bestride::inline cli {

const char* plural(const Finding& finding, const char* one, const char* many) {
  return finding.culprits.size() == 1 ? one : many;
}

const EndSnapshot* noted(const Finding& finding, const JobView& view, EndKind kind) {
  const RankSnapshot* const rank =
      finding.fault != Fault::crash || finding.culprits.empty() ? nullptr : find_rank(view, finding.culprits[0]);
  return rank && rank->end && rank->end->kind == kind ? &*rank->end : nullptr;
}

int wait_status(const Finding& finding, const JobView& view) {
  if (finding.fault != Fault::crash) return -1;
  for (const std::int32_t culprit : finding.culprits)
    if (const RankSnapshot* const rank = find_rank(view, culprit); rank && rank->wait_status >= 0)
      return rank->wait_status;
  return -1;
}

}  // namespace bestride::inline cli
