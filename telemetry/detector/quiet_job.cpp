// SPDX-License-Identifier: Apache-2.0
// Jobs in which no rank does anything, although none waits for another one in MPI.
#include <map>

#include "telemetry/detector/detector.hpp"
#include "telemetry/detector/rank_facts.hpp"

namespace bestride::inline telemetry {
namespace {

/// CPU time that a rank may use while it counts as quiet: a share and some seconds (the kernel counts in steps of 10
/// ms), since it became quiet and between two observations.
constexpr double quiet_share = 0.02, quiet_cpu_seconds = 0.1;
constexpr double recent_share = 0.1, recent_cpu_seconds = 0.02;

}  // namespace

bool Detector::has_worked(const RankSnapshot& rank, double now, History& history) {
  double recent = rank.use.cpu_seconds - history.use.cpu_seconds;
  history.polls = false;
  std::vector<ThreadUse> threads;
  for (const ThreadSnapshot& thread : rank.threads) {
    threads.push_back({thread.slot, thread.polls, thread.cpu_seconds, thread.state});
    for (const ThreadUse& before : history.threads) {
      if (before.slot != thread.slot || thread.polls <= before.polls) continue;
      const double cpu_seconds = thread.cpu_seconds - before.cpu_seconds;
      history.polls = true;
      if (cpu_seconds <= poll_cpu_seconds * static_cast<double>(thread.polls - before.polls)) recent -= cpu_seconds;
    }
  }
  history.threads = std::move(threads);
  history.worked += recent;
  const bool children_worked = history.children != 0 && rank.wait.children != history.children;
  history.children = rank.wait.children;
  return children_worked || rank.use.io_bytes != history.use.io_bytes ||
         recent > recent_share * (now - history.used_at) + recent_cpu_seconds ||
         history.worked > quiet_share * (now - history.quiet_since) + quiet_cpu_seconds;
}

Cause Detector::quiet_cause(const RankSnapshot& rank) const {
  if (history(rank).polls) return Cause::polling;
  const ThreadSnapshot* const thread = main_thread(rank);
  if (!thread) return Cause::unknown;
  if (thread->state == 'D') return Cause::uninterruptible;
  // A thread that is seen running although it uses no CPU has just woken up.
  if (thread->state == 'R' || sleeps_by_itself(thread->channel)) return Cause::sleeping;
  return is_output(thread->channel) ? Cause::transferring : Cause::blocked;
}

std::optional<Finding> Detector::quiet_job() const {
  Finding finding;
  finding.fault = Fault::computation_hang;
  finding.whole_job = true;
  std::map<Cause, std::size_t> causes;
  std::size_t size = 0;
  for (const RankSnapshot& each : ranks_) {
    size = std::max(size, static_cast<std::size_t>(each.world_size));
    if (!each.alive) continue;
    if (each.world_rank < 0 || !each.visible || each.unheard > 0 || is_in_call(each) || is_held(each) ||
        (each.state != ProcessState::initialized && each.state != ProcessState::finalized))
      return std::nullopt;
    finding.since = std::max(finding.since, history(each).quiet_since);
    ++causes[quiet_cause(each)];
  }
  for (const RankWaits& waits : graph_.ranks) {
    if (ranks_[waits.snapshot].alive) finding.culprits.push_back(waits.rank);
    // A message that two ranks have posted may be under way.
    for (const ThreadWait& thread : waits.threads)
      for (const WaitCondition& condition : thread.conditions)
        if (condition.matched) return std::nullopt;
  }
  // Ranks that are not watched may do anything.
  if (finding.culprits.empty() || graph_.ranks.size() < size) return std::nullopt;
  finding.cause = std::max_element(causes.begin(), causes.end(), [](const auto& a, const auto& b) {
                    return a.second < b.second;
                  })->first;
  finding.confidence = finding.cause == Cause::blocked || finding.cause == Cause::uninterruptible ? 0.8 : 0.6;
  return finding;
}

void Detector::find_quiet_job(std::vector<Finding>& found) {
  std::optional<Finding> finding = quiet_job();
  const double lasts = finding ? now_ - finding->since : 0;
  // The job went on, if only one rank of it.
  if (lasts < quiet_) longest_quiet_ = std::max(longest_quiet_, quiet_);
  if (!finding || lasts < quiet_) lost_before_quiet_ = lost_;
  quiet_ = lasts;
  if (!finding) return;
  const bool served = std::any_of(ranks_.begin(), ranks_.end(),
                                  [](const RankSnapshot& each) { return each.alive && each.wait.may_be_served; });
  if (!served && lasts - (lost_ - lost_before_quiet_) >= std::max(adapted(limits_.working), 3 * longest_quiet_))
    found.push_back(std::move(*finding));
  else if (lasts >= limits_.few_waiting)
    working_.push_back(std::move(*finding));
}

}  // namespace bestride::inline telemetry
