// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/detector.hpp"

#include "telemetry/detector/rank_facts.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline telemetry {
namespace {

/// A slow transfer makes a step at least this often, in seconds.
constexpr double activity_window = 3;

/// Between observations, in seconds and compared with the period before: if it was longer, the observer was stopped.
constexpr double longest_period = 2, longer_period = 2;

/// A rank that gets this share of a processor while it could run counts as served: jobs of two polling ranks on each
/// core are common. With a smaller share the time counts as much less.
constexpr double served_share = 0.5;

}  // namespace

double Detector::pause(double since_last) {
  double seconds = 0;
  if (since_last > std::max(longest_period, longer_period * usual_period_)) {
    seconds = since_last;
    held_since_ = now_;
  } else {
    usual_period_ = since_last;
  }
  const bool held_before = held_;
  held_ = std::any_of(ranks_.begin(), ranks_.end(), [](const RankSnapshot& rank) { return is_held(rank); });
  if (held_ && !held_before) held_since_ = now_ - since_last;
  if (!held_ && held_before) seconds += now_ - held_since_;
  return seconds;
}

double Detector::lost_seconds(const RankSnapshot& rank, double seconds, const History& history) {
  double waited = 0;
  if (rank.use.queued_seconds >= 0 && history.use.queued_seconds >= 0)
    waited = rank.use.queued_seconds - history.use.queued_seconds;
  // The kernel counts the time in the queue only when it ends, and only of the main thread.
  for (const ThreadSnapshot& thread : rank.threads)
    for (const ThreadUse& before : history.threads) {
      if (before.slot != thread.slot || before.state != 'R' || thread.state != 'R') continue;
      const double used = thread.cpu_seconds > 0 ? thread.cpu_seconds - before.cpu_seconds
                                                 : rank.use.cpu_seconds - history.use.cpu_seconds;
      waited = std::max(waited, seconds - used);
    }
  const double share = 1 - std::min(waited / seconds, 1.0);
  return seconds * std::max(0.0, 1 - share / served_share);
}

void Detector::update(const Observation& observation) {
  const double since_last = histories_.empty() ? 0 : observation.seconds - now_;
  now_ = observation.seconds;
  ranks_ = observation.ranks;
  last_ = observation.last;
  // A process that has just been created has no rank yet, so only what is seen twice counts.
  ended_before_.clear();
  std::set_intersection(observation.ended_before.begin(), observation.ended_before.end(), ended_last_.begin(),
                        ended_last_.end(), std::back_inserter(ended_before_));
  ended_last_.assign(observation.ended_before.begin(), observation.ended_before.end());
  suspects_ = false;
  present_.clear();
  const double paused = pause(since_last);
  paused_ = paused > 0;
  double lost = 0;
  for (const RankSnapshot& rank : ranks_) {
    const auto [at, is_new] = histories_.try_emplace(ProcessKey(rank));
    History& history = at->second;
    present_.push_back(&history);
    history.paused = std::min(history.paused + paused, now_ - history.progressed);
    if (rank.unheard > 0 && !is_new) continue;  // unchanged since the last observation
    const std::uint64_t calls = calls_of(rank);
    if (is_new || calls != history.calls || is_moving(rank)) {
      if (!is_new && history.waited && !held_ && !paused_)
        longest_wait_ = std::max(longest_wait_, history.observed - history.progressed - history.paused);
      history.calls = calls;
      history.hangs.reset();
      history.called_back = false;
      if (is_new || now_ - history.progressed >= active_window) history.active_since = now_;
      // The call was made after the last observation.
      history.progressed = is_new ? now_ : now_ - seconds_since_call(rank, now_ - history.observed);
      history.quiet_since = history.progressed;
      history.worked = 0;
      history.paused = std::min(paused, now_ - history.progressed);
      history.lost_before = lost_;
    }
    history.observed = now_;
    // Copying its stack wakes it.
    const bool woken = rank.use.sleeps != history.use.sleeps && now_ - history.lock_since < limits_.certain;
    if (rank.wait.holder != history.lock_holder || woken) history.lock_since = now_;
    history.lock_holder = rank.wait.holder;
    if (is_new) history.use = rank.use;
    if (const double seconds = now_ - history.used_at; rank.visible && seconds > 0.2) {
      lost = std::max(lost, lost_seconds(rank, seconds, history));
      history.cpu_share = is_new ? 0 : (rank.use.cpu_seconds - history.use.cpu_seconds) / seconds;
      if (has_worked(rank, now_, history)) history.quiet_since = now_, history.worked = 0;
      if (rank.use.io_bytes != history.use.io_bytes) history.transferred = now_;
      if (rank.use.sleeps != history.use.sleeps) history.slept = now_;
      history.use = rank.use;
      history.used_at = now_;
    }
    if (!rank.visible || is_held(rank)) history.quiet_since = now_;
    if (!is_held(rank))
      history.held_since = -1;
    else if (history.held_since < 0)
      history.held_since = now_, suspects_ = true;
    if (rank.alive && rank.state == ProcessState::initialized && idle(rank) >= 0.5) suspects_ = true;
  }
  if (!paused_) lost_ += lost;
}

void Detector::forget_short_lock_waits() {
  for (RankWaits& waits : graph_.ranks)
    if (const RankSnapshot& each = ranks_[waits.snapshot]; waited(each) < limits_.certain)
      if (std::erase_if(waits.threads, [](const ThreadWait& thread) {
            return !thread.conditions.empty() && thread.conditions.front().holds_lock;
          }) > 0)
        waits.every_thread_waits = false;
}

const RankSnapshot* Detector::rank(std::int32_t number) const {
  const RankWaits* const waits = graph_.find(number);
  return waits ? &ranks_[waits->snapshot] : nullptr;
}

double Detector::last_progress(const Ranks& numbers) const {
  double last = 0;
  for (const std::int32_t number : numbers)
    if (const RankSnapshot* const known = rank(number)) last = std::max(last, history(*known).progressed);
  return last;
}

Ranks Detector::held_up(const Ranks& targets, double seconds) const {
  return waiters_->held_up(targets, [&](const RankWaits& waits) { return idle(ranks_[waits.snapshot]) >= seconds; });
}

Cause Detector::cause_of(const RankSnapshot& rank) const {
  const ThreadSnapshot* const thread = main_thread(rank);
  if (!thread) return Cause::unknown;
  const History& past = history(rank);
  const bool transfers = past.transferred >= now_ - activity_window, sleeps = past.slept >= now_ - activity_window;
  if (thread->state == 'D') return Cause::uninterruptible;
  if (thread->polling) return Cause::polling;
  // What it has transferred before it began to sleep is no reason why others wait now.
  const bool asleep = thread->state == 'S' && sleeps_by_itself(thread->channel);
  if ((transfers && !asleep) || (thread->state == 'S' && is_output(thread->channel))) return Cause::transferring;
  if (past.cpu_share > 0.5) return Cause::computing;
  if (sleeps && sleeps_by_itself(thread->channel)) return Cause::sleeping;
  if (sleeps && thread->state == 'S' && !is_lock(thread->channel)) return Cause::transferring;
  if (thread->state == 'R' || past.cpu_share > 0.1) return Cause::computing;
  if (sleeps_by_itself(thread->channel)) return Cause::sleeping;
  return rank.wait.may_go_on ? Cause::waiting : Cause::blocked;
}

std::vector<Finding> Detector::observe(const Observation& observation) {
  update(observation);
  graph_ = find_waits(ranks_);
  // What some ranks do now is not known: they may yet do what others wait for.
  bool all_heard = true;
  for (RankWaits& waits : graph_.ranks)
    if (ranks_[waits.snapshot].unheard > 0) {
      all_heard = waits.every_thread_waits = false;
      waits.threads.clear();
    } else if (sleeps_beside_calls(ranks_[waits.snapshot])) {
      waits.every_thread_waits = true;  // limit_of_wait() tells whether they may go on
    }
  forget_short_lock_waits();
  waiters_.emplace(graph_);
  diagnosis_ = diagnose(graph_, *waiters_);
  working_.clear();
  std::vector<Finding> found;
  find_crashes(found);
  const bool crashed = !found.empty();
  if (!crashed) find_stopped(found);
  if (found.empty()) find_missing(found);
  if (found.empty()) find_unended(found);
  const std::size_t stopped = found.size();  // another rank may have a fault of its own
  if (found.empty()) find_unreachable(found);
  if (!crashed && found.size() == stopped) {
    if (wrong_calls_.empty()) {
      const Members members(ranks_);
      wrong_calls_ = collectives_.observe(members);
      // Ranks that are in different calls now have different reductions because of that.
      if (wrong_calls_.empty() && graph_.mismatches.empty()) wrong_calls_ = reductions_.observe(members);
    }
    if (wrong_calls_.size() > 1) wrong_calls_.resize(1);  // later ones follow from the first
    find_mismatches(wrong_calls_, true, found);
    if (found.size() == stopped) find_mismatches(graph_.mismatches, false, found);
    find_left_early(found);
    if (found.size() == stopped) find_deadlocks(found);
    find_computation_hangs(found);
    // A rank that waits for one that works may look as if its call did not end.
    if (found.empty() && working_.empty()) find_communication_hangs(found);
    if (found.empty()) find_starvation(found);
    if (found.empty() && working_.empty()) find_quiet_job(found);
  }
  const bool interrupted = !found.empty() || paused_;
  if (all_heard) find_slow(found);
  if (all_heard) find_slow_communication(interrupted, found);
  for (const RankWaits& waits : graph_.ranks)
    if (const RankSnapshot& each = ranks_[waits.snapshot]; each.unheard == 0) history(each).waited = waits.waits();
  std::vector<Finding> confirmed;
  for (const Finding& finding : found)
    // Ended ranks and calls do not change, so they need no confirmation.
    if (!crashes_.empty() || (finding.mismatch && !wrong_calls_.empty()) ||
        std::any_of(candidates_.begin(), candidates_.end(),
                    [&](const Finding& before) { return before.same_as(finding); }))
      confirmed.push_back(finding);
  unconfirmed_ = confirmed.size() < found.size();
  candidates_ = std::move(found);
  return confirmed;
}

}  // namespace bestride::inline telemetry
