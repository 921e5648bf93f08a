// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_view.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <tuple>
#include <unordered_map>

#include "telemetry/record/process_state.hpp"

namespace bestride::inline cli {
namespace {

constexpr std::chrono::milliseconds between_samples{100};

/// CPU seconds between two samples that are no computation, as the kernel counts in steps of 10 ms.
constexpr double counted_cpu_seconds = 0.02;

bool is_below(int pid, int ancestor) {
  for (int depth = 0; pid > 1 && depth < 64; ++depth) {
    if (pid == ancestor) return true;
    pid = process_status(pid).parent;
  }
  return false;
}

std::vector<Activity> activities_between(const std::vector<RankSnapshot>& before,
                                         const std::vector<RankSnapshot>& now) {
  std::unordered_map<ProcessKey, const RankSnapshot*, ProcessKeyHash> known;
  for (const RankSnapshot& rank : before) known.emplace(rank, &rank);
  std::vector<Activity> result;
  for (const RankSnapshot& rank : now) {
    const auto same = known.find(ProcessKey(rank));
    result.push_back(activity_between(same != known.end() ? same->second : nullptr, rank));
  }
  return result;
}

/// When the first process of a job began its record, in nanoseconds.
std::int64_t begin_of(const JobSnapshot& job) {
  std::int64_t begin = INT64_MAX;
  for (const RankSnapshot& rank : job.ranks) begin = std::min(begin, rank.anchor_realtime);
  return job.ranks.empty() ? 0 : std::max<std::int64_t>(begin, 0);
}

}  // namespace

Activity activity_between(const RankSnapshot* before, const RankSnapshot& now) {
  if (!before) return now.alive ? Activity::calling : Activity::none;
  std::uint64_t polls = 0;
  for (const ThreadSnapshot& thread : now.threads) {
    const auto same = std::find_if(before->threads.begin(), before->threads.end(),
                                   [&](const ThreadSnapshot& t) { return t.slot == thread.slot; });
    if (same == before->threads.end() || same->calls != thread.calls || thread.moving) return Activity::calling;
    polls += thread.polls - same->polls;
  }
  const bool computes = now.visible && before->visible &&
                        now.use.cpu_seconds - before->use.cpu_seconds >
                            poll_cpu_seconds * static_cast<double>(polls) + counted_cpu_seconds;
  return polls > 0 && !computes ? Activity::polling : Activity::none;
}

JobView begin_view(JobSnapshot now, std::vector<Activity> activities) {
  JobView view;
  for (std::size_t i = 0; i < now.ranks.size(); ++i)
    for (ThreadSnapshot& thread : now.ranks[i].threads)
      thread.polling = activities[i] == Activity::polling && !thread.in_mpi && thread.polls > 0;
  view.job = std::move(now);
  view.activities = std::move(activities);
  return view;
}

void analyze(JobView& view) {
  view.graph = find_waits(view.job.ranks);
  view.diagnosis = diagnose(view.graph);
}

bool JobView::progresses() const noexcept {
  return std::find(activities.begin(), activities.end(), Activity::calling) != activities.end();
}

bool JobView::ended() const noexcept {
  return std::none_of(job.ranks.begin(), job.ranks.end(), [](const RankSnapshot& rank) { return rank.alive; });
}

std::string no_such_job_text(const std::string& selection) {
  return "there is no record of a job '" + selection +
         "'; give the name of a job, or the pid of one of its ranks or of its launcher ('bestride where' lists all "
         "jobs)";
}

std::vector<JobSnapshot> select_jobs(std::vector<JobSnapshot> jobs, const std::string& selection) {
  if (selection.empty()) return jobs;
  const bool is_number = selection.size() < 10 && selection.find_first_not_of("0123456789") == std::string::npos;
  const int pid = is_number ? std::atoi(selection.c_str()) : 0;
  std::erase_if(jobs, [&](const JobSnapshot& job) {
    if (job.name == selection) return false;
    return !is_number || std::none_of(job.ranks.begin(), job.ranks.end(), [&](const RankSnapshot& rank) {
      return rank.pid == pid || (rank.visible && is_below(rank.pid, pid));
    });
  });
  return jobs;
}

Result<std::vector<JobView>> observe_jobs(const std::string& folder, const std::string& selection,
                                          std::size_t finished_calls) {
  const ReadOptions options{finished_calls};
  auto first = read_jobs(folder, options);
  if (!first) return first.error();
  if (first->empty() && selection.empty()) return std::vector<JobView>{};
  const std::vector<JobSnapshot> before = select_jobs(std::move(*first), selection);
  if (before.empty()) return Error{no_such_job_text(selection)};
  if (std::any_of(before.begin(), before.end(), [](const JobSnapshot& job) {
        return std::any_of(job.ranks.begin(), job.ranks.end(), [](const RankSnapshot& rank) { return rank.alive; });
      }))
    std::this_thread::sleep_for(between_samples);
  auto second = read_jobs(folder, options);
  if (!second) return second.error();
  std::vector<JobView> views;
  for (JobSnapshot& job : *second) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const auto& b) { return b.name == job.name; });
    if (selection.empty() || same != before.end()) {
      std::vector<Activity> activities =
          activities_between(same != before.end() ? same->ranks : std::vector<RankSnapshot>{}, job.ranks);
      JobView& view = views.emplace_back(begin_view(std::move(job), std::move(activities)));
      analyze(view);
      // Nobody waits any more.
      if (view.ended()) {
        for (RankWaits& waits : view.graph.ranks) waits.threads.clear();
        view.diagnosis = {};
      }
    }
  }
  std::stable_sort(views.begin(), views.end(), [](const JobView& a, const JobView& b) {
    return std::tuple(a.ended(), -begin_of(a.job)) < std::tuple(b.ended(), -begin_of(b.job));
  });
  return views;
}

}  // namespace bestride::inline cli
