// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "cli/mpi_report/trace.hpp"

namespace bestride::inline cli {

std::vector<TimelineCall> timeline(const JobView& view, std::size_t most) {
  // A call that did not return lasts until the last event of the job.
  const HostClocks clocks(view.job.ranks);
  double end = 0;
  for (const RankSnapshot& rank : view.job.ranks)
    for (const ThreadSnapshot& thread : rank.threads) {
      if (thread.last_left > 0) end = std::max(end, clocks.realtime(rank, thread.last_left));
      if (thread.current) end = std::max(end, clocks.realtime(rank, thread.current->entered));
      if (rank.alive && thread.current) end = std::max(end, clocks.realtime(rank, rank.read_at));
    }
  std::vector<TimelineCall> result;
  for (const RankSnapshot& rank : view.job.ranks) {
    std::vector<TimelineCall> calls;
    for (const ThreadSnapshot& thread : rank.threads) {
      for (const CallSnapshot& call : thread.finished)
        if (call.left > call.entered)
          calls.push_back(
              {&rank, &thread, &call, clocks.realtime(rank, call.entered), clocks.realtime(rank, call.left)});
      if (thread.current) {
        const double begin = clocks.realtime(rank, thread.current->entered);
        calls.push_back({&rank, &thread, &*thread.current, begin, std::max(begin, end)});
      }
    }
    std::stable_sort(calls.begin(), calls.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    const std::size_t first = calls.size() - std::min(most, calls.size());
    result.insert(result.end(), calls.begin() + static_cast<std::ptrdiff_t>(first), calls.end());
  }
  return result;
}

}  // namespace bestride::inline cli
