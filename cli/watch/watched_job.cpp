// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/watched_job.hpp"

#include <algorithm>

namespace bestride::inline cli {
namespace {

/// Finished calls of each thread that are read, all that there are: mismatches and tags are found in them.
constexpr std::size_t calls_read = main_ring_size;

/// True if a signal that an instruction or abort() causes has ended one of the culprits.
bool has_own_fault(const Finding& finding, const std::vector<RankSnapshot>& ranks) {
  return std::any_of(ranks.begin(), ranks.end(), [&](const RankSnapshot& rank) {
    return rank.gone() && rank.end && rank.end->kind == EndKind::signal &&
           std::binary_search(finding.culprits.begin(), finding.culprits.end(), rank.world_rank);
  });
}

}  // namespace

WatchedJob::Changes WatchedJob::observe(double seconds, const std::function<JobPhase()>& phase,
                                        std::vector<HostUpdate> hosts) {
  JobSnapshot now;
  if (local_) now = local_->read(calls_read);
  now.name = name_;
  const auto has_no_records = [](const HostUpdate& host) { return host.ranks && host.ranks->empty(); };
  UpdatedRanks updated;
  if (now.ranks.empty() && std::all_of(hosts.begin(), hosts.end(), has_no_records)) {  // they were removed
    updated = {std::move(view_.job.ranks), std::vector<Activity>(view_.activities.size())};
    now.problems.clear();
  } else {
    updated = update_ranks(std::move(view_.job.ranks), std::move(now.ranks), std::move(hosts));
  }
  now.ranks = std::move(updated.ranks);
  processes_ = std::max(processes_, now.ranks.size());
  view_ = begin_view(std::move(now), std::move(updated.activities));
  analysed_ = false;
  const JobPhase now_in = phase();
  std::vector<Finding> found = detector_.observe({seconds, view_.job.ranks, now_in == JobPhase::over});
  const bool ending = now_in == JobPhase::told_to_end || now_in == JobPhase::abandoned;
  const auto is_crash = [](const Finding& finding) { return finding.fault == Fault::crash; };
  // A crash ends what was wrong before, but the job does not go on.
  const bool goes_on = !ending && std::none_of(found.begin(), found.end(), is_crash);
  if (ending)
    std::erase_if(found, [&](const Finding& finding) {
      return is_crash(finding) && (now_in == JobPhase::told_to_end || !has_own_fault(finding, view_.job.ranks));
    });
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
