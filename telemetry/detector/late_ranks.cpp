// SPDX-License-Identifier: Apache-2.0
// Ranks for which others wait for too long, and calls that do not end.
#include <map>
#include <utility>

#include "telemetry/detector/detector.hpp"
#include "telemetry/detector/rank_facts.hpp"
#include "telemetry/detector/unmatched.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline telemetry {

namespace {

/// It may go on by itself.
bool works_by(Cause cause) {
  return cause == Cause::computing || cause == Cause::polling || cause == Cause::sleeping || cause == Cause::waiting ||
         cause == Cause::transferring || cause == Cause::unknown;
}

}  // namespace

double Detector::limit_of(Cause cause) const {
  return works_by(cause)                   ? limits_.working
         : cause == Cause::uninterruptible ? limits_.uninterruptible
                                           : limits_.computation;
}

void Detector::find_computation_hangs(std::vector<Finding>& found) {
  Ranks outside;
  for (const std::int32_t number : diagnosis_.culprits) {
    const RankSnapshot* const known = rank(number);
    if (known && known->alive && known->unheard == 0 && known->state == ProcessState::initialized &&
        !is_in_call(*known) && !is_held(*known))
      outside.push_back(number);
  }
  std::erase_if(minority_since_,
                [&](const auto& entry) { return !std::binary_search(outside.begin(), outside.end(), entry.first); });
  std::map<Cause, Finding> by_cause, working;
  // Ranks in the same sets, such as those missing from one collective call, have the same waiters.
  struct Waiting {
    std::size_t ranks = 0;
    double longest = 0;
    bool needed = false;
    bool by_any = false;  ///< by a receive from any source
  };
  std::map<std::vector<Waiters::SetNumber>, Waiting> by_sets;
  const auto alive = static_cast<std::size_t>(
      std::count_if(ranks_.begin(), ranks_.end(), [](const RankSnapshot& each) { return each.alive; }));
  for (const std::int32_t number : outside) {
    const RankSnapshot& each = *rank(number);
    const auto sets = waiters_->sets_of(number);
    const auto [at, is_new] = by_sets.try_emplace({sets.begin(), sets.end()});
    Waiting& waiting = at->second;
    if (is_new)
      for (const std::int32_t waiter : held_up({number}, 0)) {
        ++waiting.ranks;
        waiting.longest = std::max(waiting.longest, waited(*rank(waiter)));
        waiting.needed = waiting.needed || graph_.needs(waiter, number);
        const WaitCondition* const why = graph_.edge(waiter, number);
        waiting.by_any = waiting.by_any || (why && why->kind == WaitKind::any);
      }
    // All others wait in their calls, so only this rank can let one of them proceed.
    if (outside.size() == 1 && waiting.ranks + 1 == alive) waiting.needed = true;
    const double longest = waiting.longest;
    const bool minority = waiting.needed && waiting.ranks >= outside.size();
    if (minority)
      minority_since_.try_emplace(number, now_);
    else
      minority_since_.erase(number);
    // Observing the rank may wake it, as copying its stack does, so the first cause is kept.
    std::optional<Cause>& hangs = history(each).hangs;
    const Cause cause = hangs.value_or(cause_of(each));
    const bool works = works_by(cause);
    double limit = limit_of(cause);
    // A master that waits for its only worker, as opposed to one with other workers that are idle.
    if (waiting.ranks == 1 && waiting.by_any) limit = std::max(limit, limits_.communication);
    // It may have waited in its last call for long.
    double lasts = std::min(seconds_since_call(each, idle(each)), longest);
    if (minority)
      lasts = std::min(lasts, now_ - minority_since_[number] + limits_.certain);
    else
      limit = std::max(limit, limits_.few_waiting);
    const double lost = works ? idle(each) - served_idle(each) : 0;
    const bool is_fault = lasts - lost >= adapted(limit);
    if (!is_fault && (!works || lasts < limits_.computation)) continue;
    if (is_fault) hangs = cause;
    Finding& finding = (is_fault ? by_cause : working)[cause];
    finding.fault = Fault::computation_hang;
    finding.cause = cause;
    finding.culprits.push_back(number);
    finding.confidence = works ? 0.6 : 0.9;
  }
  for (auto* const findings : {&by_cause, &working})
    for (auto& [cause, finding] : *findings) {
      finding.held_up = held_up(finding.culprits, 0);
      finding.since = now_;
      for (const std::int32_t culprit : finding.culprits)
        finding.since = std::min(finding.since,
                                 now_ - seconds_since_call(*rank(culprit), now_ - history(*rank(culprit)).progressed));
      (findings == &by_cause ? found : working_).push_back(std::move(finding));
    }
}

void Detector::find_unended(std::vector<Finding>& found) {
  std::map<Cause, Finding> by_cause, working;
  std::size_t ended = 0;
  for (const RankSnapshot& each : ranks_) {
    if (each.world_rank < 0 || each.state != ProcessState::finalized || each.unheard > 0) return;
    if (!each.alive) {
      ++ended;
      continue;
    }
    if (is_held(each)) return;
    const Cause cause = history(each).hangs.value_or(cause_of(each));
    const bool is_fault = (works_by(cause) ? served_idle(each) : idle(each)) >= limit_of(cause);
    if (!is_fault && (!works_by(cause) || idle(each) < limits_.computation)) continue;
    if (is_fault) history(each).hangs = cause;
    Finding& finding = (is_fault ? by_cause : working)[cause];
    finding.fault = Fault::computation_hang;
    finding.cause = cause;
    finding.culprits.push_back(each.world_rank);
    finding.confidence = works_by(cause) ? 0.6 : 0.9;
  }
  if (ended == 0) return;
  for (auto* const findings : {&by_cause, &working})
    for (auto& [cause, finding] : *findings) {
      finding.since = last_progress(finding.culprits);
      (findings == &by_cause ? found : working_).push_back(std::move(finding));
    }
}

/// Ranks that the launcher has counted and that have no record, while the others wait in MPI_Init, or have ended there.
void Detector::find_missing(std::vector<Finding>& found) {
  Ranks present, unrecorded;
  std::int32_t size = 0;
  bool all_gone = true;
  double waited = 0, served = 0;
  for (const RankSnapshot& each : ranks_) {
    if (each.world_rank >= 0 || each.state != ProcessState::starting || each.launch_rank < 0) return;
    if (each.unrecorded) {
      unrecorded.push_back(each.launch_rank);
      continue;
    }
    present.push_back(each.launch_rank);
    size = std::max(size, each.launch_size);
    all_gone = all_gone && !each.alive;
    waited = std::max(waited, idle(each));
    served = std::max(served, served_idle(each));
  }
  std::sort(present.begin(), present.end());
  std::sort(unrecorded.begin(), unrecorded.end());
  if (present.empty() || static_cast<std::size_t>(size) <= present.size()) return;
  const bool all_ended = all_gone && last_;
  if (!all_ended && waited < limits_.computation) return;
  Finding finding;
  finding.cause = Cause::starting;
  for (std::int32_t number = 0; number < size; ++number)
    if (!std::binary_search(present.begin(), present.end(), number)) finding.culprits.push_back(number);
  finding.since = now_ - waited;
  // The launcher waits for all of them, but those that have ended are why.
  finding.without_process = !all_ended && !ended_before_.empty();
  if (finding.without_process) finding.culprits = ended_before_;
  const bool known = finding.without_process || unrecorded == finding.culprits;
  finding.confidence = known ? 0.9 : 0.6;  // else they may be on hosts that are not watched
  finding.held_up = std::move(present);
  if (all_ended || finding.without_process) {
    finding.fault = Fault::crash;
    return crashes_.push_back(finding), found.push_back(std::move(finding));
  }
  finding.fault = Fault::computation_hang;
  (served >= limits_.working ? found : working_).push_back(std::move(finding));
}

void Detector::find_communication_hangs(std::vector<Finding>& found) {
  Ranks stuck, locked, elsewhere;
  Ranks unresolved;             // they may wait for something that is not known
  Cause does = Cause::waiting;  // those that are in a function of the program
  // If no rank can let the others proceed, ranks that wait for others count, too: all edges may be of completed sends.
  const double limit = adapted(limits_.communication);
  const auto all_wait_for = [&](double seconds) {
    return std::all_of(graph_.ranks.begin(), graph_.ranks.end(), [&](const RankWaits& waits) {
      const RankSnapshot& each = ranks_[waits.snapshot];
      return each.unheard == 0 &&
             (!each.alive || (is_in_call(each) && served_idle(each) >= std::max(seconds, limit_of_wait(waits))));
    });
  };
  const bool all_wait = all_wait_for(limit);
  // A message with another tag than the one that its receiver waits for explains why.
  if (!all_wait && all_wait_for(adapted(limits_.computation)))
    if (auto probable = probable_deadlock(); probable && probable->tags) return found.push_back(std::move(*probable));
  for (const RankWaits& waits : graph_.ranks) {
    const RankSnapshot& each = ranks_[waits.snapshot];
    if (!each.alive || each.unheard > 0 || !is_in_call(each) || (waits.waits() && !all_wait) ||
        std::min(served_idle(each), seconds_since_others(each)) < std::max(limit, limit_of_wait(waits)))
      continue;
    // What is not in its conditions may be what it waits for.
    if (std::any_of(waits.threads.begin(), waits.threads.end(), [](const ThreadWait& t) { return !t.resolved; })) {
      unresolved.push_back(waits.rank);
      continue;
    }
    stuck.push_back(waits.rank);
    if (history(each).called_back) {
      elsewhere.push_back(waits.rank);
      does = cause_of(each);
      continue;
    }
    if (const ThreadSnapshot* const thread = main_thread(each); thread && thread->state == 'S') {
      if (is_lock(thread->channel)) locked.push_back(waits.rank);
      if (is_of_program(thread->channel)) elsewhere.push_back(waits.rank);
    }
  }
  if (stuck.empty()) return;
  Finding finding;
  finding.fault = Fault::communication_hang;
  finding.cause = Cause::in_mpi;
  // A rank that sleeps on a lock inside MPI while the others poll does not progress the communication.
  const bool by_lock = !locked.empty() && 2 * locked.size() <= stuck.size();
  // The others wait for a rank whose call does not end, although nobody keeps it waiting, or nobody knows for whom.
  Ranks first;
  for (const std::int32_t number : stuck)
    if (!graph_.find(number)->waits()) first.push_back(number);
  const auto waits_for_unresolved = [&](std::int32_t number) {
    return std::any_of(unresolved.begin(), unresolved.end(),
                       [&](std::int32_t target) { return graph_.needs(number, target); });
  };
  if (first.empty() && std::all_of(stuck.begin(), stuck.end(), waits_for_unresolved)) first = unresolved;
  finding.culprits = !elsewhere.empty() ? elsewhere : by_lock ? locked : !first.empty() ? first : stuck;
  if (!elsewhere.empty()) {
    finding.fault = Fault::computation_hang;
    finding.cause = does;
  }
  finding.held_up = held_up(finding.culprits, 0);
  finding.since = last_progress(finding.culprits);
  finding.confidence = 0.8;
  if (all_wait && elsewhere.empty()) {
    Ranks all;
    for (const RankWaits& waits : graph_.ranks) all.push_back(waits.rank);
    if (const std::vector<EpochFault> epochs = epoch_faults_among(all); !epochs.empty())
      explain(finding, epochs), finding.held_up = held_up(finding.culprits, 0);
    else if (auto probable = probable_deadlock())
      finding = std::move(*probable);
  }
  if (Ranks senders = partitioned_senders(); finding.fault == Fault::communication_hang && !senders.empty()) {
    finding.fault = Fault::unmatched_message;
    finding.partitioned = true;
    finding.culprits = std::move(senders);
    finding.held_up = std::move(stuck);
    std::erase_if(finding.held_up, [&](std::int32_t each) { return is_member(finding.culprits, each); });
    finding.since = last_progress(finding.culprits);
    finding.confidence = 0.7;  // or the library does not transfer what is ready
  }
  const bool works = !elsewhere.empty() && now_ - finding.since < adapted(limits_.working);
  (works ? working_ : found).push_back(std::move(finding));
}

/// Those whose partitioned sends are started and received, and for which a rank waits: MPI_Pready of the sender lets
/// them go on, which is not recorded.
Ranks Detector::partitioned_senders() const {
  Ranks senders;
  for (const RankWaits& waits : graph_.ranks)
    for (const ThreadWait& thread : waits.threads)
      for (const WaitCondition& condition : thread.conditions) {
        if (!condition.matched || condition.ranks.size() != 1) continue;
        const std::string& function = function_name(condition.function);
        if (function == "MPI_Psend_init") senders.push_back(waits.rank);
        if (function == "MPI_Precv_init") senders.push_back(condition.ranks.front());
      }
  std::sort(senders.begin(), senders.end());
  senders.erase(std::unique(senders.begin(), senders.end()), senders.end());
  return senders;
}

bool Detector::call_back(const Ranks& ranks) {
  bool news = false;
  for (const std::int32_t number : ranks)
    if (const RankSnapshot* const known = rank(number))
      if (!std::exchange(history(*known).called_back, true)) news = true;
  return news;
}

/// Of the ranks that a call needs which `of` is in: the members of its communicator, all ranks for MPI_Finalize. A
/// call is not stuck for longer than since the last one of them has come to it, or has left it.
double Detector::seconds_since_others(const RankSnapshot& of) const {
  const ThreadSnapshot* const thread = main_thread(of);
  const CommunicatorSnapshot* const in =
      thread && thread->current ? of.communicator(thread->current->communicator) : nullptr;
  const bool all = of.state >= ProcessState::finalizing;
  double least = now_;
  if (!all && (!in || in->uid == 0 || thread->current->ordinal == 0)) return least;
  for (const RankSnapshot& each : ranks_) {
    const bool is_member = all || std::any_of(each.communicators.begin(), each.communicators.end(),
                                              [&](const CommunicatorSnapshot& its) { return its.uid == in->uid; });
    if (each.world_rank < 0 || !is_member) continue;
    least = std::min(least, each.alive ? served_idle(each) : each.ended > 0 ? now_ - each.ended : least);
  }
  return least;
}

/// The deadlock that exists if all messages of unknown state are incomplete.
std::optional<Finding> Detector::probable_deadlock() const {
  const std::vector<Diagnosis::Cycle> cycles = diagnose(graph_, *waiters_, Edges::unmatched).cycles;
  if (cycles.empty()) return std::nullopt;
  Finding finding = finding_of_cycle(cycles.front());
  finding.confidence = 0.6;
  return finding;
}

/// In most observations, a rank that serves only some of its senders waits for one of these, so the diagnosis does not
/// name it as a culprit.
Ranks Detector::ranks_that_pass_over_messages(double least_wait) const {
  Ranks result;
  for (const RankWaits& waits : graph_.ranks) {
    const RankSnapshot& waiter = ranks_[waits.snapshot];
    if (idle(waiter) < least_wait) continue;
    each_needed(waits, [&](const RankSet& needed) {
      const RankSnapshot* const known = needed.size() == 1 ? rank(needed.front()) : nullptr;
      if (known && idle(*known) < active_window && !is_member(result, needed.front()) &&
          passes_over_messages(waiter, *known))
        result.insert(std::lower_bound(result.begin(), result.end(), needed.front()), needed.front());
    });
  }
  return result;
}

void Detector::find_starvation(std::vector<Finding>& found) {
  Finding starved, working;
  Ranks suspects = ranks_that_pass_over_messages(adapted(limits_.starvation));
  suspects.insert(suspects.end(), diagnosis_.culprits.begin(), diagnosis_.culprits.end());
  std::sort(suspects.begin(), suspects.end());
  suspects.erase(std::unique(suspects.begin(), suspects.end()), suspects.end());
  for (const std::int32_t number : suspects) {
    const RankSnapshot* const known = rank(number);
    if (!known || !known->alive || known->unheard > 0 || idle(*known) >= active_window) continue;
    // It may have waited itself, and may come to the call soon.
    const double active = now_ - history(*known).active_since;
    if (active < adapted(limits_.starvation)) continue;
    // A rank may wait for its next task while others work. It is starved if its own message was not received.
    double longest = 0;
    // Nor does it wait for a task if all others are in collective calls, so that none can send it one.
    const Ranks waiters = held_up({number}, adapted(limits_.starvation));
    const bool all_wait = waiters.size() + 1 == graph_.ranks.size();
    for (const std::int32_t waiter : waiters) {
      const WaitCondition* const why = graph_.edge(waiter, number);
      const bool by_all = all_wait && why && why->required && why->ordinal != 0;
      if (graph_.needs(waiter, number) && (by_all || has_unreceived_messages(*rank(waiter), *known)))
        longest = std::max(longest, served_idle(*rank(waiter)));
    }
    if (longest <= 0) continue;
    const double lasts = std::min(active, longest);
    Finding& finding = lasts >= adapted(limits_.working) ? starved : working;
    finding.since = finding.culprits.empty() ? now_ - lasts : std::min(finding.since, now_ - lasts);
    finding.culprits.push_back(number);
  }
  for (Finding* const finding : {&starved, &working}) {
    if (finding->culprits.empty()) continue;
    finding->fault = Fault::starvation;
    finding->cause = Cause::in_mpi;
    finding->held_up = held_up(finding->culprits, adapted(limits_.starvation));
    finding->confidence = 0.7;
    (finding == &starved ? found : working_).push_back(std::move(*finding));
  }
}

void Detector::find_slow(std::vector<Finding>& found) {
  for (const SlowRank& slow : slow_ranks_.observe(now_, ranks_, suspects_ || paused_ || !found.empty())) {
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

void Detector::find_slow_communication(bool interrupted, std::vector<Finding>& found) {
  for (SlowPathFinding& slow : slow_communication_.observe(now_, ranks_, interrupted)) {
    Finding finding;
    finding.fault = Fault::slow_communication;
    finding.cause = Cause::in_mpi;
    finding.culprits = std::move(slow.ranks);
    finding.since = slow.since;
    finding.confidence = slow.confidence;
    finding.factor = slow.path.factor;
    finding.path = std::move(slow.path);
    found.push_back(std::move(finding));
  }
}

}  // namespace bestride::inline telemetry
