// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/watched_job.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <csignal>

#include "cli/job/rank_line.hpp"

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

/// Seconds between two searches for ranks without a record.
constexpr double absent_interval = 1;

/// Seconds for which a crash is not reported if it may be an end that was asked for: all ranks get the signal, but not
/// all end at the same time, less so with more ranks than processors, and how a rank has ended is known a little later.
constexpr double longest_end = 1;

/// The signal that has ended this rank, if it is one with which jobs are ended; else 0.
int ending_signal(const RankSnapshot& rank) {
  const int signal = rank.wait_status >= 0 && WIFSIGNALED(rank.wait_status) ? WTERMSIG(rank.wait_status) : 0;
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT ? signal : 0;
}

/// The signal with which a user, a batch system or a launcher has told the job to end: all ranks whose wait status is
/// known have ended by it, these are more than one if there are more, and no rank has noted another end. 0: none.
int requested_end(const std::vector<RankSnapshot>& ranks) {
  int requested = 0;
  std::size_t known = 0;
  for (const RankSnapshot& rank : ranks) {
    if (!rank.gone()) continue;
    if (rank.end) return 0;
    if (rank.wait_status < 0) continue;
    const int signal = ending_signal(rank);
    if (signal == 0 || (known > 0 && signal != requested)) return 0;
    requested = signal;
    ++known;
  }
  return known >= std::min<std::size_t>(ranks.size(), 2) ? requested : 0;
}

}  // namespace

bool WatchedJob::may_be_requested(double seconds) {
  const auto& ranks = view_.job.ranks;
  const auto is_open = [](const auto& rank) {
    return rank.alive || (rank.gone() && !rank.end && rank.wait_status < 0);
  };
  if (std::none_of(ranks.begin(), ranks.end(), [](const auto& rank) { return rank.gone() && ending_signal(rank); }) ||
      std::none_of(ranks.begin(), ranks.end(), is_open))
    return false;
  if (postponed_ == 0) postponed_ = seconds;
  return seconds - postponed_ < longest_end;
}

void WatchedJob::add_absent(std::vector<RankSnapshot>& ranks, double seconds) {
  if (seconds - absent_at_ >= absent_interval) {
    absent_ = telemetry::find_absent_ranks(ranks);
    absent_at_ = seconds;
  }
  if (absent_.processes.empty() && absent_.ended.empty()) return;
  const auto has_record = [&ranks](std::int32_t number) {
    return std::any_of(ranks.begin(), ranks.end(),
                       [number](const RankSnapshot& rank) { return telemetry::number_of(rank) == number; });
  };
  std::erase_if(absent_.processes, [&](const RankSnapshot& rank) { return has_record(rank.launch_rank); });
  std::erase_if(absent_.ended, has_record);
  ranks.insert(ranks.end(), absent_.processes.begin(), absent_.processes.end());
}

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
    if (hosts.empty()) add_absent(now.ranks, seconds);
    updated = update_ranks(std::move(view_.job.ranks), std::move(now.ranks), std::move(hosts));
  }
  now.ranks = std::move(updated.ranks);
  const auto recorded =
      std::count_if(now.ranks.begin(), now.ranks.end(), [](const RankSnapshot& rank) { return !rank.unrecorded; });
  processes_ = std::max(processes_, static_cast<std::size_t>(recorded));
  view_ = begin_view(std::move(now), std::move(updated.activities));
  analyzed_ = false;
  const JobPhase now_in = phase();
  std::vector<Finding> found = detector_.observe({seconds, view_.job.ranks, now_in == JobPhase::over, absent_.ended});
  const auto is_crash = [](const Finding& finding) { return finding.fault == Fault::crash; };
  Changes changes;
  const bool crashed = std::any_of(reported_.begin(), reported_.end(),
                                   [&](const Reported& reported) { return is_crash(reported.finding); });
  const bool runs = !crashed && (now_in == JobPhase::running || now_in == JobPhase::over);
  if (runs && requested_ == 0) changes.requested = requested_ = requested_end(view_.job.ranks);
  const bool told = now_in == JobPhase::told_to_end || requested_ != 0 ||
                    (runs && now_in == JobPhase::running && may_be_requested(seconds));
  const bool ending = told || now_in == JobPhase::abandoned;
  // A crash ends what was wrong before, but the job does not go on.
  const bool goes_on = !ending && std::none_of(found.begin(), found.end(), is_crash);
  if (ending)
    std::erase_if(found, [&](const Finding& finding) {
      return is_crash(finding) && (told || !has_own_fault(finding, view_.job.ranks));
    });
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

std::string requested_text(int signal) {
  return "the job was ended by " + signal_text(signal) + ", which all its ranks got: no rank is at fault";
}

}  // namespace bestride::inline cli
