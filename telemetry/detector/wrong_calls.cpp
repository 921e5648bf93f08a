// SPDX-License-Identifier: Apache-2.0
// Calls that do not match: collective calls that differ between members, cycles of waiting ranks.
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "telemetry/detector/detector.hpp"
#include "telemetry/detector/rank_facts.hpp"
#include "telemetry/detector/unmatched.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline telemetry {

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
    finding.culprits = mismatch.culprits;
    const bool majority =
        !finding.culprits.empty() || mismatch.variants[0].ranks.size() > mismatch.variants[1].ranks.size();
    for (std::size_t i = majority; mismatch.culprits.empty() && i < mismatch.variants.size(); ++i)
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
  std::set<const void*> visited;
  Ranks needed, left;
  for (const RankWaits& waits : graph_.ranks) {
    const RankSnapshot& waiter = ranks_[waits.snapshot];
    if (waiter.state >= ProcessState::finalizing || idle(waiter) < limits_.certain) continue;
    each_needed(waits, [&](const RankSet& ranks) {
      if (visited.insert(ranks.id()).second) needed.insert(needed.end(), ranks.begin(), ranks.end());
    });
    if (idle(waiter) < limits_.computation) continue;  // short messages that were sent before may be on their way
    for (const ThreadWait& thread : waits.threads)
      if (thread.only_peer != no_rank) needed.push_back(thread.only_peer);
  }
  std::sort(needed.begin(), needed.end());
  for (const RankWaits& waits : graph_.ranks) {
    const RankSnapshot& each = ranks_[waits.snapshot];
    if (each.state >= ProcessState::finalizing && (!each.alive || idle(each) >= limits_.certain) &&
        std::binary_search(needed.begin(), needed.end(), waits.rank))
      left.push_back(waits.rank);
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
  Ranks cycle_ranks = cycle;
  std::sort(cycle_ranks.begin(), cycle_ranks.end());
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
  const auto is_member = [this](std::int32_t number, std::uint64_t communicator) {
    const std::vector<CommunicatorSnapshot>& its = rank(number)->communicators;
    return std::any_of(its.begin(), its.end(), [=](const auto& each) { return each.uid == communicator; });
  };
  Ranks minority;
  for (const auto& [call, ranks] : calls)
    for (const std::int32_t number : ranks) {
      if (!std::binary_search(cycle_ranks.begin(), cycle_ranks.end(), number) ||
          std::binary_search(most->begin(), most->end(), number))
        continue;
      // That the others are not in its call shows nothing if they have nothing to do there.
      if (!std::all_of(most->begin(), most->end(),
                       [&](std::int32_t each) { return is_member(each, std::get<0>(call)); }))
        return cycle;
      minority.push_back(number);
    }
  std::sort(minority.begin(), minority.end());
  return minority.empty() ? cycle : minority;
}

/// True for an edge of a message, not of a collective call or of a lock.
static bool is_message(const WaitCondition& why) {
  const CallKind kind = kind_of(why.function, false);
  return why.ordinal == 0 && kind != CallKind::finalize && kind != CallKind::lock && kind != CallKind::access &&
         kind != CallKind::exposure && kind != CallKind::one_sided;
}

/// The epochs of windows for which these ranks wait.
std::vector<EpochMismatch> Detector::epoch_mismatches_among(const Ranks& ranks) const {
  std::vector<EpochMismatch> result;
  const auto has_started = [](const RankSnapshot& rank, std::uint64_t window, std::int32_t target,
                              const EpochSnapshot* posted) {
    for (const CommunicatorSnapshot& its : rank.communicators)
      if (its.uid == window)
        if (const EpochSnapshot* const epoch = epoch_with(rank, its.index, target))
          return posted && static_cast<std::int32_t>(epoch->starts - posted->posts) >= 0;
    return false;
  };
  for (const std::int32_t waiter : ranks)
    for (const ThreadWait& thread : graph_.find(waiter)->threads)
      for (const WaitCondition& condition : thread.conditions) {
        const CallKind kind = kind_of(condition.function, false);
        if (kind != CallKind::access && kind != CallKind::exposure) continue;
        const RankSnapshot& waits = *rank(waiter);
        for (const std::int32_t target : condition.ranks) {
          const char* missing = "MPI_Win_post";
          if (kind == CallKind::exposure) {
            const EpochSnapshot* posted = nullptr;
            for (const EpochSnapshot& epoch : waits.epochs)
              if (const auto* const of = waits.communicator(epoch.window);
                  epoch.rank == target && of && of->uid == condition.communicator)
                posted = &epoch;
            const RankSnapshot* const other = rank(target);
            missing = other && has_started(*other, condition.communicator, waiter, posted) ? "MPI_Win_complete"
                                                                                           : "MPI_Win_start";
          }
          result.push_back({waiter, target, condition.function, missing, condition.communicator});
        }
      }
  return result;
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
          if (const WaitCondition* const back = graph_.edge(target, number);
              back && back->kind == WaitKind::all && is_message(*back) && back->communicator == condition.communicator)
            result.push_back(target);
      }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

/// A message with another tag than the one that a rank of `waiters` waits for.
std::optional<TagMismatch> Detector::tag_mismatch_among(const Ranks& waiters) const {
  for (const std::int32_t waiter : waiters) {
    std::optional<Receives> receives;
    for (const ThreadWait& thread : graph_.find(waiter)->threads)
      for (const WaitCondition& condition : thread.conditions) {
        if (condition.matched || !is_message(condition)) continue;
        if (!receives) receives.emplace(*rank(waiter));
        for (const std::int32_t target : condition.ranks)
          if (const RankSnapshot* const other = rank(target); other && target != waiter)
            if (const auto found = receives->find_mismatch(*other, /*any_communicator=*/false)) return found;
      }
  }
  return std::nullopt;
}

std::vector<Detector::Contradiction> Detector::contradictions_in(const Ranks& group) const {
  std::vector<Contradiction> result;
  for (const std::int32_t waiter : group)
    for (const ThreadWait& thread : graph_.find(waiter)->threads)
      for (const WaitCondition& condition : thread.conditions) {
        if (!condition.required || condition.ranks.size() != 1 || !is_message(condition)) continue;
        const std::int32_t peer = condition.ranks.front();
        if (const WaitCondition* const back = graph_.edge(peer, waiter); back && back->required && back->ordinal != 0)
          result.push_back({waiter, peer, condition.receives});
      }
  return result;
}

Finding Detector::finding_of_cycle(const Diagnosis::Cycle& found) const {
  const Ranks& cycle = found.ranks;
  Finding finding;
  finding.fault = Fault::deadlock;
  finding.cause = Cause::in_mpi;
  finding.cycle = cycle;
  finding.confidence = 1;
  std::size_t messages = 0, receives = 0;
  Ranks receivers, holders;  // of locks
  Ranks gone_on;             // those of whose message a rank waits, and that wait for something else than a message
  Ranks from_any;            // those that wait for a message from any of several ranks, which have all gone on
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const std::int32_t waiter = cycle[i], target = cycle[(i + 1) % cycle.size()];
    const WaitCondition* const why = graph_.edge(waiter, target);
    if (why && kind_of(why->function, false) == CallKind::lock) holders.push_back(target);
    if (!why || !is_message(*why)) continue;
    ++messages;
    if (why->receives)
      ++receives;
    else
      receivers.push_back(target);
    const WaitCondition* const next = graph_.edge(target, cycle[(i + 2) % cycle.size()]);
    if (next && is_message(*next)) continue;
    if (why->ranks.size() > 1)
      from_any.push_back(waiter);
    else
      gone_on.push_back(target);
  }
  const std::vector<Contradiction> contradictions = contradictions_in(found.group);
  // By what they did before: those that have left out a message, and those that wait for one that is never sent.
  Ranks omitting, expecting;
  for (const Contradiction& each : contradictions) {
    const std::optional<std::int64_t> more = more_than_usual(*rank(each.waiter), *rank(each.peer), each.receives);
    if (more && *more <= 0) (*more < 0 ? omitting : expecting).push_back(*more < 0 ? each.peer : each.waiter);
    if (each.receives && more != 0 && !finding.tags)
      finding.tags = Receives(*rank(each.waiter)).find_mismatch(*rank(each.peer), /*any_communicator=*/true);
  }
  // The whole group is searched, because the cycle may pass through a receive that is complete. But a sender that
  // itself waits for a message may yet send the one that is expected, so a contradiction elsewhere explains more.
  if (contradictions.empty()) finding.tags = tag_mismatch_among(found.group);
  const Ranks silent = silent_partners(cycle);
  const std::vector<EpochMismatch> epochs = epoch_mismatches_among(found.group);
  const bool only_epochs = std::all_of(epochs.begin(), epochs.end(),
                                       [&](const EpochMismatch& epoch) {
                                         return is_member(cycle, epoch.waiter) && is_member(cycle, epoch.other);
                                       }) &&
                           epochs.size() >= cycle.size();
  if (finding.tags) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = {finding.tags->from};
    finding.confidence = 0.7;  // the tags also differ if the ranks are in different phases for another reason
  } else if (!contradictions.empty()) {
    finding.fault = Fault::unmatched_message;
    const Contradiction& first = contradictions.front();
    const auto has_waiter = [&](const Contradiction& each) { return each.waiter == first.waiter; };
    const auto has_peer = [&](const Contradiction& each) { return each.peer == first.peer; };
    const bool known = !omitting.empty() || !expecting.empty();
    if (!known && std::all_of(contradictions.begin(), contradictions.end(), has_waiter) &&
        !std::all_of(contradictions.begin(), contradictions.end(), has_peer))
      expecting = {first.waiter};  // one fault explains as much as one of each peer
    else if (!known)
      for (const Contradiction& each : contradictions) omitting.push_back(each.peer);
    finding.alone = omitting.empty();
    finding.culprits = omitting.empty() ? expecting : omitting;
    // Or the others make a collective call too many, or the waiting rank names the wrong peer.
    finding.confidence = known ? 0.8 : finding.alone ? 0.6 : 0.7;
  } else if (!silent.empty()) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = silent;
    finding.confidence = 0.8;  // whose message is missing is a guess
  } else if (!epochs.empty() && !only_epochs && messages == 0) {
    // A rank that waits for one and is waited for by another has named the wrong group; else the others wait rightly.
    const auto in_between = std::find_if(epochs.begin(), epochs.end(), [&](const EpochMismatch& epoch) {
      return std::any_of(epochs.begin(), epochs.end(),
                         [&](const EpochMismatch& other) { return other.waiter == epoch.other; });
    });
    const bool is_between = in_between != epochs.end();
    finding.fault = Fault::mismatch;
    finding.epoch = is_between ? *in_between : epochs.front();
    for (const EpochMismatch& epoch : epochs)
      if (!is_between || epoch.other == in_between->other) finding.culprits.push_back(epoch.other);
    finding.confidence = 0.8;  // or the others synchronise once too often
  } else if (!gone_on.empty()) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = gone_on;
    finding.confidence = 0.7;  // or the others make a collective call too many, or the message comes later
  } else if (!from_any.empty()) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = from_any;
    finding.alone = true;
    finding.confidence = 0.6;  // or a rank has left out its message: which one, nothing tells
  } else if (receivers.size() == 1 && receives + 1 == cycle.size()) {
    // The others wait for messages that are sent later.
    finding.fault = Fault::unmatched_message;
    finding.culprits = receivers;
    finding.confidence = 0.8;  // or the sender sends too much, or in another order
  } else {
    finding.culprits = messages > 0 ? cycle : !holders.empty() ? holders : minority_of(cycle);
  }
  std::sort(finding.culprits.begin(), finding.culprits.end());
  finding.culprits.erase(std::unique(finding.culprits.begin(), finding.culprits.end()), finding.culprits.end());
  for (const std::int32_t number : cycle)
    for (const ThreadWait& thread : graph_.find(number)->threads)
      if (thread.polling) finding.confidence = std::min(finding.confidence, 0.9);  // it may cease to poll
  finding.held_up = held_up(finding.culprits, 0);
  finding.since = last_progress(cycle);
  return finding;
}

double Detector::limit_of_polls(const RankWaits& waits) const {
  double limit = 0;
  for (const ThreadWait& thread : waits.threads)
    if (thread.polling) limit = std::max(limit, thread.probing ? limits_.working : limits_.computation);
  return limit;
}

void Detector::find_deadlocks(std::vector<Finding>& found) const {
  for (const Diagnosis::Cycle& cycle : diagnosis_.cycles) {
    const bool stands = std::all_of(cycle.ranks.begin(), cycle.ranks.end(), [this](std::int32_t number) {
      const RankWaits* const waits = graph_.find(number);
      if (!waits) return false;
      const RankSnapshot& each = ranks_[waits->snapshot];
      return idle(each) >= std::max(limits_.certain, limit_of_polls(*waits)) && each.state < ProcessState::finalizing;
    });
    if (stands) found.push_back(finding_of_cycle(cycle));
  }
}

}  // namespace bestride::inline telemetry
