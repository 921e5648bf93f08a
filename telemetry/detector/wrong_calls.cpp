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
    if (!std::binary_search(most->begin(), most->end(), number)) minority.push_back(number);
  return minority.empty() ? cycle : minority;
}

/// For a rank of the cycle that receives from any source: the ranks that wait for a message from it on the same
/// communicator, so that their own message is the one that is missing.
/// True for an edge of a message, not of a collective call or of a lock.
static bool is_message(const WaitCondition& why) {
  return why.ordinal == 0 && kind_of(why.function, false) != CallKind::finalize &&
         kind_of(why.function, false) != CallKind::lock;
}

Ranks Detector::silent_partners(const Ranks& cycle) const {
  Ranks result;
  for (const std::int32_t number : cycle)
    for (const ThreadWait& thread : graph_.find(number)->threads)
      for (const WaitCondition& condition : thread.conditions) {
        if (condition.kind != WaitKind::any || condition.ranks.size() < 2) continue;
        for (const std::int32_t target : condition.ranks)
          if (const WaitCondition* const back = graph_.edge(target, number);
              back && is_message(*back) && back->communicator == condition.communicator)
            result.push_back(target);
      }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

/// A message with another tag than the one that a rank of `waiters` waits for.
std::optional<TagMismatch> Detector::tag_mismatch_among(const Ranks& waiters) const {
  for (const std::int32_t waiter : waiters)
    for (const ThreadWait& thread : graph_.find(waiter)->threads)
      for (const WaitCondition& condition : thread.conditions) {
        if (condition.matched || !is_message(condition)) continue;
        for (const std::int32_t target : condition.ranks)
          if (const RankSnapshot* const other = rank(target); other && target != waiter)
            if (const auto found = find_tag_mismatch(*other, *rank(waiter))) return found;
      }
  return std::nullopt;
}

Finding Detector::finding_of_cycle(const Diagnosis::Cycle& found) const {
  const Ranks& cycle = found.ranks;
  Finding finding;
  finding.fault = Fault::deadlock;
  finding.cause = Cause::in_mpi;
  finding.cycle = cycle;
  finding.confidence = 1;
  std::set<std::int32_t> targets;  // of messages
  std::size_t messages = 0, receives = 0;
  Ranks receivers, holders;  // of locks
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const std::int32_t waiter = cycle[i], target = cycle[(i + 1) % cycle.size()];
    const WaitCondition* const why = graph_.edge(waiter, target);
    if (why && kind_of(why->function, false) == CallKind::lock) holders.push_back(target);
    if (!why || !is_message(*why)) continue;
    ++messages;
    targets.insert(target);
    if (why->receives)
      ++receives;
    else
      receivers.push_back(target);
  }
  // The whole group is searched, because the cycle may pass through a receive that is complete.
  finding.tags = tag_mismatch_among(found.group);
  const Ranks silent = silent_partners(cycle);
  if (!silent.empty() && !finding.tags) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = silent;
    finding.confidence = 0.8;  // whose message is missing is a guess
  } else if (finding.tags) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = {finding.tags->from};
    finding.confidence = 0.8;  // the tags also differ if the ranks are in different phases for another reason
  } else if (messages > 0 && messages < cycle.size()) {
    finding.fault = Fault::unmatched_message;
    finding.culprits.assign(targets.begin(), targets.end());
    finding.confidence = 0.8;  // or the others make a collective call too many
  } else if (receivers.size() == 1 && receives + 1 == cycle.size()) {
    // The others wait for messages that are sent later.
    finding.fault = Fault::unmatched_message;
    finding.culprits = receivers;
    finding.confidence = 0.8;  // or the sender sends too much, or in another order
  } else {
    finding.culprits = messages > 0 ? cycle : !holders.empty() ? holders : minority_of(cycle);
    std::sort(finding.culprits.begin(), finding.culprits.end());
  }
  finding.held_up = held_up(finding.culprits, 0);
  finding.since = last_progress(cycle);
  return finding;
}

void Detector::find_other_tag(std::vector<Finding>& found) const {
  constexpr int most_waiters = 1000;  // bounds the time with many ranks
  int looked_at = 0;
  for (const RankWaits& waits : graph_.ranks) {
    const RankSnapshot& waiter = ranks_[waits.snapshot];
    if (!waits.waits() || waiter.unheard > 0 || idle(waiter) < adapted(limits_.certain)) continue;
    if (++looked_at > most_waiters) return;
    const std::optional<TagMismatch> tags = tag_mismatch_among({waits.rank});
    // A sender that does not wait may yet send the other message.
    if (const RankWaits* const sender = tags ? graph_.find(tags->from) : nullptr; !sender || !sender->waits()) continue;
    Finding finding;
    finding.fault = Fault::unmatched_message;
    finding.cause = Cause::in_mpi;
    finding.culprits = {tags->from};
    finding.tags = tags;
    finding.held_up = held_up(finding.culprits, 0);
    finding.since = last_progress({waits.rank});
    finding.confidence = 0.5;  // the other message may follow once the ranks that hang go on
    return found.push_back(std::move(finding));
  }
}

void Detector::find_deadlocks(std::vector<Finding>& found) const {
  for (const Diagnosis::Cycle& cycle : diagnosis_.cycles) {
    const bool stands = std::all_of(cycle.ranks.begin(), cycle.ranks.end(), [this](std::int32_t number) {
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

}  // namespace bestride::inline telemetry
