// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/watched_job.hpp"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace bestride::inline cli {
namespace {

/// Finished calls of each thread that are read, all that there are: mismatches and tags are found in them.
constexpr std::size_t calls_read = main_ring_size;

}  // namespace

WatchedJob::Changes WatchedJob::observe(double seconds, JobPhase phase, std::vector<RankSnapshot> others) {
  JobSnapshot now;
  if (local_) now = local_->read(calls_read);
  now.name = name_;
  now.ranks.insert(now.ranks.end(), std::make_move_iterator(others.begin()), std::make_move_iterator(others.end()));
  if (now.ranks.empty()) now.ranks = std::move(view_.job.ranks), now.problems.clear();  // its records were removed
  std::sort(now.ranks.begin(), now.ranks.end(), [](const RankSnapshot& a, const RankSnapshot& b) {
    return std::tie(a.world_rank, a.host, a.pid) < std::tie(b.world_rank, b.host, b.pid);
  });
  processes_ = std::max(processes_, now.ranks.size());
  view_ = make_view(std::move(now), &view_.job);
  std::vector<Finding> found = detector_.observe({seconds, view_.job.ranks, phase == JobPhase::over});
  const bool ending = phase == JobPhase::told_to_end;
  const auto is_crash = [](const Finding& finding) { return finding.fault == Fault::crash; };
  // A crash ends what was wrong before, but the job does not go on.
  const bool goes_on = !ending && std::none_of(found.begin(), found.end(), is_crash);
  if (ending) std::erase_if(found, is_crash);
  Changes changes;
  for (std::size_t i = 0; i < reported_.size(); ++i)
    if (goes_on && reported_[i].ended == 0 && std::none_of(found.begin(), found.end(), [&](const Finding& finding) {
          return finding.same_as(reported_[i].finding);
        })) {
      reported_[i].ended = seconds;
      changes.ended.push_back(i);
    }
  for (const Finding& finding : found)
    if (std::none_of(reported_.begin(), reported_.end(),
                     [&](const Reported& known) { return known.ended == 0 && known.finding.same_as(finding); })) {
      changes.begun.push_back(reported_.size());
      reported_.push_back({finding, seconds, 0});
    }
  return changes;
}

}  // namespace bestride::inline cli
