// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/detector.hpp"

#include <deque>
#include <set>
#include <tuple>

#include "telemetry/detector/unmatched.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline telemetry {
namespace {

using Ranks = std::vector<std::int32_t>;

constexpr int sigkill = 9;
/// A slow transfer makes a step at least this often, in seconds.
constexpr double activity_window = 3;

bool is_member(const Ranks& ranks, std::int32_t rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

std::uint64_t calls_of(const RankSnapshot& rank) {
  std::uint64_t calls = 0;
  for (const ThreadSnapshot& thread : rank.threads) calls += thread.calls;
  return calls;
}

/// Seconds since a rank last began or ended a call; `most` if that is not known.
double seconds_since_call(const RankSnapshot& rank, double most) {
  double least = most;
  for (const ThreadSnapshot& thread : rank.threads)
    if (const double seconds = rank.seconds_since(thread.current ? thread.current->entered : thread.last_left);
        seconds > 0)
      least = std::min(least, seconds);
  return least;
}

bool is_moving(const RankSnapshot& rank) {
  return std::any_of(rank.threads.begin(), rank.threads.end(), [](const ThreadSnapshot& t) { return t.moving; });
}

/// The thread of a rank whose state describes it: the first one that exists.
const ThreadSnapshot* main_thread(const RankSnapshot& rank) {
  for (const ThreadSnapshot& thread : rank.threads)
    if (thread.tid != 0 && thread.state != '?') return &thread;
  return nullptr;
}

bool is_held(const RankSnapshot& rank) {
  const ThreadSnapshot* const thread = main_thread(rank);
  return rank.alive && thread && (thread->state == 'T' || thread->state == 't');
}

bool is_in_call(const RankSnapshot& rank) {
  return std::any_of(rank.threads.begin(), rank.threads.end(), [](const ThreadSnapshot& t) { return t.in_mpi; });
}

bool is_in(const RankSnapshot& rank, const char* function) {
  return std::any_of(rank.threads.begin(), rank.threads.end(), [function](const ThreadSnapshot& t) {
    return t.current && function_name(t.current->function) == function;
  });
}

bool sleeps_by_itself(const std::string& channel) { return channel.find("nanosleep") != std::string::npos; }
/// Output, which may take long if its other end is slow: pipe_write, fsync, ...
bool is_output(const std::string& channel) {
  return channel.find("write") != std::string::npos || channel.find("sync") != std::string::npos ||
         channel.find("send") != std::string::npos;
}
bool is_lock(const std::string& channel) { return channel.find("futex") != std::string::npos; }

/// The condition by which `waiter` waits for `target`; null if it does not.
const WaitCondition* edge(const WaitGraph& graph, std::int32_t waiter, std::int32_t target) {
  const RankWaits* const waits = graph.find(waiter);
  if (!waits) return nullptr;
  const WaitCondition* found = nullptr;
  for (const ThreadWait& thread : waits->threads)
    for (const WaitCondition& condition : thread.conditions)
      if (!condition.matched && is_member(condition.ranks, target) && (!found || condition.required))
        found = &condition;
  return found;
}

/// True if `waiter` needs `target` itself: not any one of several, and not only by a detail of the MPI library.
bool needs(const WaitGraph& graph, std::int32_t waiter, std::int32_t target) {
  const RankWaits* const waits = graph.find(waiter);
  if (!waits) return false;
  for (const ThreadWait& thread : waits->threads) {
    if (thread.kind == WaitKind::any && thread.conditions.size() > 1) continue;
    for (const WaitCondition& condition : thread.conditions)
      if (condition.required && condition.kind == WaitKind::all && is_member(condition.ranks, target)) return true;
  }
  return false;
}

}  // namespace

const char* name(Fault fault) noexcept {
  static constexpr const char* names[] = {"crash",
                                          "stopped",
                                          "mismatch",
                                          "unmatched message",
                                          "deadlock",
                                          "non-communication hang",
                                          "communication hang",
                                          "starvation",
                                          "slow"};
  static_assert(std::size(names) == faults);
  return names[static_cast<unsigned>(fault)];
}

const char* name(Cause cause) noexcept {
  static constexpr const char* names[] = {"unknown", "killed",          "aborted",   "stopped",
                                          "traced",  "uninterruptible", "computing", "sleeping",
                                          "blocked", "transferring",    "finalized", "in MPI"};
  static_assert(std::size(names) == static_cast<unsigned>(Cause::in_mpi) + 1);
  return names[static_cast<unsigned>(cause)];
}

void Detector::update(const Observation& observation) {
  now_ = observation.seconds;
  ranks_ = observation.ranks;
  suspects_ = false;
  for (const RankSnapshot& rank : ranks_) interrupted_ = interrupted_ || is_held(rank);
  bool progress = false;
  for (const RankSnapshot& rank : ranks_) {
    const auto [at, is_new] = histories_.try_emplace({rank.pid, rank.process_start});
    History& history = at->second;
    const std::uint64_t calls = calls_of(rank);
    if (is_new || calls != history.calls || is_moving(rank)) {
      if (!is_new && history.waited && !interrupted_)
        longest_wait_ = std::max(longest_wait_, history.observed - history.progressed);
      progress = progress || !is_new;
      history.calls = calls;
      // The call was made after the last observation.
      history.progressed = is_new ? now_ : now_ - seconds_since_call(rank, now_ - history.observed);
    }
    history.observed = now_;
    if (is_new) history.use = rank.use;
    if (const double seconds = now_ - history.used_at; rank.visible && seconds > 0.2) {
      history.cpu_share = is_new ? 0 : (rank.use.cpu_seconds - history.use.cpu_seconds) / seconds;
      if (rank.use.io_bytes != history.use.io_bytes) history.transferred = now_;
      if (rank.use.sleeps != history.use.sleeps) history.slept = now_;
      history.use = rank.use;
      history.used_at = now_;
    }
    if (rank.alive && rank.state == ProcessState::initialized && idle(rank) >= 0.5) suspects_ = true;
  }
  // After an interruption everybody's wait is longer by it.
  if (progress && interrupted_)
    interrupted_ = std::any_of(ranks_.begin(), ranks_.end(), [](const RankSnapshot& rank) { return is_held(rank); });
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
  std::set<std::int32_t> found;
  std::deque<std::int32_t> open(targets.begin(), targets.end());
  while (!open.empty()) {
    const std::int32_t target = open.front();
    open.pop_front();
    for (const RankWaits& waits : graph_.ranks)
      if (!found.count(waits.rank) && !is_member(targets, waits.rank) && edge(graph_, waits.rank, target) &&
          idle(ranks_[waits.snapshot]) >= seconds) {
        found.insert(waits.rank);
        open.push_back(waits.rank);
      }
  }
  return {found.begin(), found.end()};
}

Cause Detector::cause_of(const RankSnapshot& rank) const {
  const ThreadSnapshot* const thread = main_thread(rank);
  if (!thread) return Cause::unknown;
  const History& past = history(rank);
  const bool transfers = past.transferred >= now_ - activity_window, sleeps = past.slept >= now_ - activity_window;
  if (thread->state == 'D') return Cause::uninterruptible;
  if (transfers || (thread->state == 'S' && is_output(thread->channel))) return Cause::transferring;
  if (past.cpu_share > 0.5) return Cause::computing;
  if (sleeps && sleeps_by_itself(thread->channel)) return Cause::sleeping;
  if (sleeps && thread->state == 'S' && !is_lock(thread->channel)) return Cause::transferring;
  if (thread->state == 'R' || past.cpu_share > 0.1) return Cause::computing;
  return sleeps_by_itself(thread->channel) ? Cause::sleeping : Cause::blocked;
}

WaitGraph Detector::last_graph() const {
  std::vector<RankSnapshot> last(ranks_.begin(), ranks_.end());
  for (RankSnapshot& each : last) each.alive = false;
  return find_waits(last);
}

Ranks Detector::not_waiting(const Ranks& gone) const {
  const WaitGraph graph = last_graph();
  Ranks result;
  for (const std::int32_t number : gone)
    if (const RankWaits* const waits = graph.find(number); waits && !waits->waits()) result.push_back(number);
  return result.empty() ? gone : result;
}

/// The rank whose last call is the longest ago: a rank that crashed makes no more calls, while its launcher learns of
/// it and ends the others.
std::int32_t Detector::first_idle(const Ranks& gone) const {
  return *std::max_element(gone.begin(), gone.end(), [this](std::int32_t a, std::int32_t b) {
    const auto idle_seconds = [this](std::int32_t number) { return seconds_since_call(*rank(number), 1e9); };
    return idle_seconds(a) < idle_seconds(b);
  });
}

void Detector::find_crashes(std::vector<Finding>& found) {
  if (crashes_.empty()) {
    Ranks gone, aborted, known, first;
    double earliest = 0;
    for (const RankSnapshot& each : ranks_) {
      if (each.world_rank < 0) continue;
      // The launcher ends the other ranks, perhaps before this one.
      if (is_in(each, "MPI_Abort")) aborted.push_back(each.world_rank);
      if (!each.gone()) continue;
      gone.push_back(each.world_rank);
      if (each.ended > 0 && (first.empty() || each.ended <= earliest)) {
        if (each.ended < earliest) first.clear();
        earliest = each.ended;
        first.push_back(each.world_rank);
      }
      // The launcher ends the other ranks with SIGKILL.
      if (each.wait_status >= 0 && (each.wait_status & 0x7f) != sigkill) known.push_back(each.world_rank);
    }
    if (gone.empty() && aborted.empty()) return;
    Finding crash;
    crash.fault = Fault::crash;
    crash.cause = aborted.empty() ? Cause::killed : Cause::aborted;
    crash.culprits = !aborted.empty() ? aborted : !known.empty() ? known : !first.empty() ? first : gone;
    const bool sure = crash.culprits.size() == 1;
    if (!sure) crash.culprits = {first_idle(not_waiting(crash.culprits))};
    crash.since = now_;
    crash.confidence = sure ? 1 : 0.6;
    crash.held_up = held_up(crash.culprits, 0);
    // The MPI library ends a rank that finds an error in such a call.
    find_mismatches(last_graph().mismatches, true, crashes_);
    crashes_.push_back(std::move(crash));
  }
  found.insert(found.end(), crashes_.begin(), crashes_.end());
}

void Detector::find_stopped(std::vector<Finding>& found) const {
  std::map<Cause, Ranks> stopped;
  for (const RankWaits& waits : graph_.ranks) {
    const RankSnapshot& each = ranks_[waits.snapshot];
    if (!is_held(each) || idle(each) < limits_.stopped) continue;
    const bool traced = main_thread(each)->state == 't' || each.use.tracer != 0;
    stopped[traced ? Cause::traced : Cause::stopped].push_back(each.world_rank);
  }
  for (auto& [cause, ranks] : stopped) {
    Finding finding;
    finding.fault = Fault::stopped;
    finding.cause = cause;
    finding.held_up = held_up(ranks, 0);
    finding.since = last_progress(ranks);
    finding.confidence = 1;
    finding.culprits = std::move(ranks);
    found.push_back(std::move(finding));
  }
}

/// `certain`: the mismatch has led to an error, so it need not last.
void Detector::find_mismatches(const std::vector<CollectiveMismatch>& mismatches, bool certain,
                               std::vector<Finding>& found) const {
  for (const CollectiveMismatch& mismatch : mismatches) {
    const auto hangs = [this](std::int32_t number) {
      const RankSnapshot* const known = rank(number);
      return known && known->alive && is_in_call(*known) && idle(*known) >= limits_.certain;
    };
    if (!certain && std::none_of(mismatch.variants.begin(), mismatch.variants.end(), [&](const auto& variant) {
          return std::any_of(variant.ranks.begin(), variant.ranks.end(), hangs);
        }))
      continue;
    Finding finding;
    finding.fault = Fault::mismatch;
    finding.cause = Cause::in_mpi;
    const bool majority = mismatch.variants[0].ranks.size() > mismatch.variants[1].ranks.size();
    for (std::size_t i = majority; i < mismatch.variants.size(); ++i)
      finding.culprits.insert(finding.culprits.end(), mismatch.variants[i].ranks.begin(),
                              mismatch.variants[i].ranks.end());
    std::sort(finding.culprits.begin(), finding.culprits.end());
    finding.held_up = held_up(finding.culprits, limits_.certain);
    finding.since = last_progress(finding.culprits);
    finding.confidence = majority ? 1 : 0.9;
    finding.mismatch = mismatch;
    found.push_back(std::move(finding));
  }
}

void Detector::find_left_early(std::vector<Finding>& found) const {
  Ranks left;
  for (const RankWaits& waits : graph_.ranks) {
    const RankSnapshot& each = ranks_[waits.snapshot];
    if (each.state < ProcessState::finalizing || (each.alive && idle(each) < limits_.certain)) continue;
    for (const RankWaits& other : graph_.ranks) {
      const RankSnapshot& waiter = ranks_[other.snapshot];
      if (waiter.state < ProcessState::finalizing && idle(waiter) >= limits_.certain &&
          needs(graph_, other.rank, waits.rank)) {
        left.push_back(waits.rank);
        break;
      }
    }
  }
  if (left.empty()) return;
  Finding finding;
  finding.fault = Fault::mismatch;
  finding.cause = Cause::finalized;
  finding.held_up = held_up(left, limits_.certain);
  finding.since = last_progress(left);
  finding.confidence = 1;
  finding.culprits = std::move(left);
  found.push_back(std::move(finding));
}

/// The members of a cycle of collective calls that are not in the call that most deadlocked ranks are in.
Ranks Detector::minority_of(const Ranks& cycle) const {
  using Call = std::tuple<std::uint64_t, std::uint32_t, std::string>;
  std::map<Call, Ranks> calls;
  for (const std::int32_t number : diagnosis_.deadlocked)
    if (const RankWaits* const waits = graph_.find(number))
      for (const ThreadWait& thread : waits->threads)
        for (const WaitCondition& condition : thread.conditions)
          if (condition.ordinal != 0)
            calls[{condition.communicator, condition.ordinal, function_name(condition.function)}].push_back(number);
  const Ranks* most = nullptr;
  bool tie = false;
  for (const auto& [call, ranks] : calls) {
    tie = most && ranks.size() == most->size() ? true : (!most || ranks.size() > most->size()) ? false : tie;
    if (!most || ranks.size() > most->size()) most = &ranks;
  }
  if (!most || tie) return cycle;
  Ranks minority;
  for (const std::int32_t number : cycle)
    if (!is_member(*most, number)) minority.push_back(number);
  return minority.empty() ? cycle : minority;
}

/// For a rank of the cycle that receives from any source: the ranks that wait for a message from it on the same
/// communicator, so that their own message is the one that is missing.
Ranks Detector::silent_partners(const Ranks& cycle) const {
  Ranks result;
  for (const std::int32_t number : cycle)
    for (const ThreadWait& thread : graph_.find(number)->threads)
      for (const WaitCondition& condition : thread.conditions) {
        if (condition.kind != WaitKind::any || condition.ranks.size() < 2) continue;
        for (const std::int32_t target : condition.ranks)
          if (const WaitCondition* const back = edge(graph_, target, number);
              back && back->ordinal == 0 && back->communicator == condition.communicator && !is_member(result, target))
            result.push_back(target);
      }
  std::sort(result.begin(), result.end());
  return result;
}

Finding Detector::finding_of_cycle(const Ranks& cycle) const {
  Finding finding;
  finding.fault = Fault::deadlock;
  finding.cause = Cause::in_mpi;
  finding.cycle = cycle;
  finding.confidence = 1;
  std::set<std::int32_t> targets;  // of messages
  std::size_t messages = 0;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const std::int32_t waiter = cycle[i], target = cycle[(i + 1) % cycle.size()];
    const WaitCondition* const why = edge(graph_, waiter, target);
    if (!why || why->ordinal != 0 || function_name(why->function) == "MPI_Finalize") continue;
    ++messages;
    targets.insert(target);
    const RankSnapshot *const from = rank(target), *const to = rank(waiter);
    if (from && to && !finding.tags) finding.tags = find_tag_mismatch(*from, *to);
  }
  const Ranks silent = silent_partners(cycle);
  if (!silent.empty() && !finding.tags) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = silent;
  } else if (finding.tags) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = {finding.tags->from};
  } else if (messages > 0 && messages < cycle.size()) {
    finding.fault = Fault::unmatched_message;
    finding.culprits.assign(targets.begin(), targets.end());
  } else {
    finding.culprits = messages > 0 ? cycle : minority_of(cycle);
    std::sort(finding.culprits.begin(), finding.culprits.end());
  }
  finding.held_up = held_up(finding.culprits, 0);
  finding.since = last_progress(cycle);
  return finding;
}

void Detector::find_deadlocks(std::vector<Finding>& found) const {
  for (const Ranks& cycle : diagnosis_.cycles) {
    const bool stands = std::all_of(cycle.begin(), cycle.end(), [this](std::int32_t number) {
      const RankWaits* const waits = graph_.find(number);
      if (!waits) return false;
      const bool polls = std::any_of(waits->threads.begin(), waits->threads.end(),
                                     [](const ThreadWait& thread) { return thread.polling; });
      const RankSnapshot& each = ranks_[waits->snapshot];
      return idle(each) >= (polls ? limits_.computation : limits_.certain) && each.state < ProcessState::finalizing;
    });
    if (stands) found.push_back(finding_of_cycle(cycle));
  }
}

void Detector::find_computation_hangs(std::vector<Finding>& found) {
  Ranks outside;
  for (const std::int32_t number : diagnosis_.culprits) {
    const RankSnapshot* const known = rank(number);
    if (known && known->alive && known->state == ProcessState::initialized && !is_in_call(*known) && !is_held(*known))
      outside.push_back(number);
  }
  std::erase_if(minority_since_, [&](const auto& entry) { return !is_member(outside, entry.first); });
  std::map<Cause, Finding> by_cause;
  for (const std::int32_t number : outside) {
    const RankSnapshot& each = *rank(number);
    const Ranks waiting = held_up({number}, 0);
    double longest = 0;
    bool needed = false;
    for (const std::int32_t waiter : waiting) {
      longest = std::max(longest, idle(*rank(waiter)));
      needed = needed || needs(graph_, waiter, number);
    }
    const bool minority = needed && waiting.size() >= outside.size();
    if (minority)
      minority_since_.try_emplace(number, now_);
    else
      minority_since_.erase(number);
    const Cause cause = cause_of(each);
    double limit =
        cause == Cause::transferring || cause == Cause::uninterruptible ? limits_.transferring : limits_.computation;
    double lasts = std::min(idle(each), longest);
    if (minority)
      lasts = std::min(lasts, now_ - minority_since_[number] + limits_.certain);
    else
      limit = std::max(limit, limits_.few_waiting);
    if (lasts < adapted(limit)) continue;
    Finding& finding = by_cause[cause];
    finding.fault = Fault::computation_hang;
    finding.cause = cause;
    finding.culprits.push_back(number);
    finding.confidence = cause == Cause::computing || cause == Cause::transferring ? 0.8 : 0.9;
  }
  for (auto& [cause, finding] : by_cause) {
    finding.held_up = held_up(finding.culprits, 0);
    finding.since = last_progress(finding.culprits);
    found.push_back(std::move(finding));
  }
}

void Detector::find_communication_hangs(std::vector<Finding>& found) const {
  Ranks stuck, locked;
  // If no rank can make the others go on, those that wait for others count, too: all edges may be of sends that are
  // complete.
  const double limit = adapted(limits_.communication);
  const bool all_wait = std::all_of(graph_.ranks.begin(), graph_.ranks.end(), [&](const RankWaits& waits) {
    const RankSnapshot& each = ranks_[waits.snapshot];
    return !each.alive || (is_in_call(each) && idle(each) >= limit);
  });
  for (const RankWaits& waits : graph_.ranks) {
    const RankSnapshot& each = ranks_[waits.snapshot];
    if (!each.alive || !is_in_call(each) || (waits.waits() && !all_wait) || idle(each) < limit) continue;
    // What is not in its conditions may be what it waits for.
    if (std::any_of(waits.threads.begin(), waits.threads.end(), [](const ThreadWait& t) { return !t.resolved; }))
      continue;
    stuck.push_back(waits.rank);
    if (const ThreadSnapshot* const thread = main_thread(each);
        thread && thread->state == 'S' && is_lock(thread->channel))
      locked.push_back(waits.rank);
  }
  if (stuck.empty()) return;
  Finding finding;
  finding.fault = Fault::communication_hang;
  finding.cause = Cause::in_mpi;
  // A rank that sleeps on a lock inside MPI, while the others poll, does not carry on the communication.
  const bool by_lock = !locked.empty() && 2 * locked.size() <= stuck.size();
  finding.culprits = by_lock ? locked : stuck;
  finding.held_up = held_up(finding.culprits, 0);
  finding.since = last_progress(finding.culprits);
  finding.confidence = 0.8;
  found.push_back(std::move(finding));
}

void Detector::find_starvation(std::vector<Finding>& found) const {
  Finding finding;
  for (const std::int32_t number : diagnosis_.culprits) {
    const RankSnapshot* const known = rank(number);
    if (!known || !known->alive || idle(*known) >= 2) continue;
    // A rank may wait for its next task while others work. It is forgotten if its own message was not received.
    const Ranks waiting = held_up({number}, adapted(limits_.starvation));
    if (std::any_of(waiting.begin(), waiting.end(), [&](std::int32_t waiter) {
          return needs(graph_, waiter, number) && has_unreceived_messages(*rank(waiter), *known);
        }))
      finding.culprits.push_back(number);
  }
  if (finding.culprits.empty()) return;
  finding.fault = Fault::starvation;
  finding.cause = Cause::in_mpi;
  finding.held_up = held_up(finding.culprits, adapted(limits_.starvation));
  finding.since = now_ - adapted(limits_.starvation);
  finding.confidence = 0.7;
  found.push_back(std::move(finding));
}

void Detector::find_slow(std::vector<Finding>& found) {
  for (const SlowRank& slow : slow_ranks_.observe(now_, ranks_, suspects_ || !found.empty())) {
    Finding finding;
    finding.fault = Fault::slow;
    finding.cause = Cause::computing;
    finding.culprits = {slow.rank};
    for (const RankWaits& waits : graph_.ranks)
      if (waits.rank != slow.rank) finding.held_up.push_back(waits.rank);
    finding.since = slow.since;
    finding.confidence = slow.confidence;
    finding.factor = slow.factor;
    if (const RankSnapshot* const known = rank(slow.rank)) finding.cpu_share = history(*known).cpu_share;
    found.push_back(std::move(finding));
  }
}

std::vector<Finding> Detector::observe(const Observation& observation) {
  update(observation);
  graph_ = find_waits(ranks_);
  diagnosis_ = diagnose(graph_);
  std::vector<Finding> found;
  find_crashes(found);
  if (found.empty()) find_stopped(found);
  if (found.empty()) {
    if (wrong_calls_.empty()) wrong_calls_ = collectives_.observe(Members(ranks_));
    if (wrong_calls_.size() > 1) wrong_calls_.resize(1);  // later ones follow from the first
    find_mismatches(wrong_calls_, true, found);
    if (found.empty()) find_mismatches(graph_.mismatches, false, found);
    find_left_early(found);
    if (found.empty()) find_deadlocks(found);
    find_computation_hangs(found);
    if (found.empty()) find_communication_hangs(found);
    if (found.empty()) find_starvation(found);
  }
  find_slow(found);
  for (const RankWaits& waits : graph_.ranks) {
    const RankSnapshot& each = ranks_[waits.snapshot];
    histories_.at({each.pid, each.process_start}).waited = waits.waits();
  }
  std::vector<Finding> confirmed;
  for (const Finding& finding : found)
    if (!crashes_.empty() || std::any_of(candidates_.begin(), candidates_.end(),
                                         [&](const Finding& before) { return before.same_as(finding); }))
      confirmed.push_back(finding);
  candidates_ = std::move(found);
  return confirmed;
}

}  // namespace bestride::inline telemetry
