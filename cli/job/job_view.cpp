// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_view.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <tuple>

#include "telemetry/record/process_state.hpp"

namespace bestride::inline cli {
namespace {

constexpr std::chrono::milliseconds between_samples{100};

bool is_below(int pid, int ancestor) {
  for (int depth = 0; pid > 1 && depth < 64; ++depth) {
    if (pid == ancestor) return true;
    pid = process_status(pid).parent;
  }
  return false;
}

Activity activity(const RankSnapshot& before, const RankSnapshot& now) {
  Activity result = Activity::none;
  for (const ThreadSnapshot& thread : now.threads) {
    const auto same = std::find_if(before.threads.begin(), before.threads.end(),
                                   [&](const ThreadSnapshot& t) { return t.slot == thread.slot; });
    if (same == before.threads.end() || same->calls != thread.calls || thread.moving) return Activity::calling;
    if (same->polls != thread.polls) result = Activity::polling;
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

JobView make_view(JobSnapshot now, const JobSnapshot* before) {
  JobView view;
  for (RankSnapshot& rank : now.ranks) {
    Activity found = rank.alive ? Activity::calling : Activity::none;  // new since the first sample
    if (before)
      for (const RankSnapshot& same : before->ranks)
        if (same_process(same, rank)) found = activity(same, rank);
    for (ThreadSnapshot& thread : rank.threads)
      thread.polling = found == Activity::polling && !thread.in_mpi && thread.polls > 0;
    view.activities.push_back(found);
  }
  view.graph = find_waits(now.ranks);
  view.diagnosis = diagnose(view.graph);
  view.job = std::move(now);
  return view;
}

bool JobView::progresses() const noexcept {
  return std::find(activities.begin(), activities.end(), Activity::calling) != activities.end();
}

bool JobView::ended() const noexcept {
  return std::none_of(job.ranks.begin(), job.ranks.end(), [](const RankSnapshot& rank) { return rank.alive; });
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
  if (before.empty())
    return Error{"there is no record of a job '" + selection +
                 "'; give the name of a job, or the pid of one of its ranks or of its launcher ('bestride where' lists "
                 "all jobs)"};
  if (std::any_of(before.begin(), before.end(), [](const JobSnapshot& job) {
        return std::any_of(job.ranks.begin(), job.ranks.end(), [](const RankSnapshot& rank) { return rank.alive; });
      }))
    std::this_thread::sleep_for(between_samples);
  auto second = read_jobs(folder, options);
  if (!second) return second.error();
  std::vector<JobView> views;
  for (JobSnapshot& job : *second) {
    const auto same = std::find_if(before.begin(), before.end(), [&](const auto& b) { return b.name == job.name; });
    if (selection.empty() || same != before.end())
      views.push_back(make_view(std::move(job), same != before.end() ? &*same : nullptr));
  }
  std::stable_sort(views.begin(), views.end(), [](const JobView& a, const JobView& b) {
    return std::tuple(a.ended(), -begin_of(a.job)) < std::tuple(b.ended(), -begin_of(b.job));
  });
  return views;
}

}  // namespace bestride::inline cli
