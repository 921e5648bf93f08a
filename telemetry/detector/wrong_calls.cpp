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
#include "telemetry/waits/collective_call.hpp"

namespace bestride::inline telemetry {
namespace {

/// It looks in turn for a message from any source, and perhaps for the end of something else. So no message need be
/// missing, also if there is only one other rank that could send one.
bool probes_any(const ThreadWait& thread, const WaitCondition& condition) {
  return thread.probing && condition.kind == WaitKind::any;
}

/// It remembers an earlier call on the communicator like the one of its variant.
bool has_made_before(const RankSnapshot& rank, const CollectiveMismatch& mismatch,
                     const CollectiveMismatch::Variant& variant) {
  const auto is_like = [&](const CallSnapshot& call) {
    const CommunicatorSnapshot* const in = rank.communicator(call.communicator);
    const CollectiveCall made = CollectiveCall::of(call.function, call.peer, call.bytes, call.operation);
    return in && in->uid == mismatch.communicator && call.ordinal != 0 && call.ordinal < mismatch.ordinal &&
           made.function == variant.function && made.root == variant.root && made.bytes == variant.bytes &&
           made.reduction == variant.reduction;
  };
  return std::any_of(rank.threads.begin(), rank.threads.end(), [&](const ThreadSnapshot& thread) {
    return std::any_of(thread.finished.begin(), thread.finished.end(), is_like);
  });
}

}  // namespace

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
    const auto all_of_ranks = [this](const auto& variant, const auto& is) {
      return std::all_of(variant.ranks.begin(), variant.ranks.end(), [&](std::int32_t number) {
        const RankSnapshot* const known = rank(number);
        return known && is(*known);
      });
    };
    // Of as many that are about to end and that go on, the former have left the others; of as many that have passed
    // these arguments before and that have not, the latter are wrong. In another function they may be ahead.
    const auto leaves = [&](const auto& variant) {
      return all_of_ranks(variant, [](const auto& each) { return each.state >= ProcessState::finalizing; });
    };
    const auto is_new = [&](const auto& variant) {
      return !all_of_ranks(variant, [&](const auto& each) { return has_made_before(each, mismatch, variant); });
    };
    const auto is_some = [&](const auto& is) {
      const auto count = std::count_if(mismatch.variants.begin(), mismatch.variants.end(), is);
      return !majority && count > 0 && static_cast<std::size_t>(count) < mismatch.variants.size();
    };
    const bool some_left = is_some(leaves), some_new = !some_left && is_one_function(mismatch) && is_some(is_new);
    for (std::size_t i = majority; mismatch.culprits.empty() && i < mismatch.variants.size(); ++i)
      if (const auto& variant = mismatch.variants[i]; some_left ? leaves(variant) : !some_new || is_new(variant))
        finding.culprits.insert(finding.culprits.end(), variant.ranks.begin(), variant.ranks.end());
    std::sort(finding.culprits.begin(), finding.culprits.end());
    finding.held_up = held_up(finding.culprits, limits_.certain);
    finding.since = last_progress(finding.culprits);
    finding.confidence = majority ? 1 : some_new ? 0.8 : 0.9;
    finding.mismatch = mismatch;
    found.push_back(std::move(finding));
  }
}

void Detector::find_left_early(std::vector<Finding>& found) const {
  std::set<const void*> visited;
  Ranks needed, left;
  for (const RankWaits& waits : graph_.ranks) {
    const RankSnapshot& waiter = ranks_[waits.snapshot];
    if (waiter.state >= ProcessState::finalizing || idle(waiter) < limits_.certain ||
        served_idle(waiter) < limit_of_wait(waits))
      continue;
    each_needed(waits, [&](const RankSet& ranks) {
      if (visited.insert(ranks.id()).second) needed.insert(needed.end(), ranks.begin(), ranks.end());
    });
    if (served_idle(waiter) < limits_.computation)
      continue;  // short messages that were sent before may be on their way
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
  // One of them may have sent the message that is waited for with another tag.
  finding.tags = tag_mismatch_among(finding.held_up, /*certain=*/false, /*any_communicator=*/false);
  if (!finding.tags) finding.tags = tag_mismatch_among(finding.held_up, /*certain=*/false, /*any_communicator=*/true);
  if (finding.tags && is_member(left, finding.tags->from)) {
    finding.fault = Fault::unmatched_message;
    finding.cause = Cause::in_mpi;
    left = {finding.tags->by_receiver ? finding.tags->to : finding.tags->from};
    finding.confidence = 0.8;
  } else {
    finding.tags.reset();
  }
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
  return why.ordinal == 0 && !why.holds_lock && kind != CallKind::finalize && kind != CallKind::lock &&
         kind != CallKind::access && kind != CallKind::exposure && kind != CallKind::one_sided;
}

std::vector<EpochFault> Detector::epoch_faults_among(const Ranks& numbers) const {
  std::vector<const RankSnapshot*> ranks;
  for (const std::int32_t number : numbers)
    if (const RankSnapshot* const known = rank(number); known && known->alive) ranks.push_back(known);
  std::vector<EpochFault> faults = find_epoch_faults(ranks);
  // Others may be of epochs that have passed: those of MPICH only count the ranks of a group.
  if (std::none_of(faults.begin(), faults.end(), [](const EpochFault& fault) { return fault.waits; })) faults.clear();
  return faults;
}

void Detector::explain(Finding& finding, const std::vector<EpochFault>& faults) {
  finding.fault = Fault::mismatch;
  finding.cause = Cause::in_mpi;
  finding.epoch = faults.front().mismatch;
  finding.culprits = blamed_for(faults);
  finding.confidence = 0.8;  // or the others synchronize once too often
}

/// Of ranks that wait for `hub`, the only one that has answered less of its messages than all others, which have
/// answered equally many; all of them if there is none, or if it is not known.
Ranks Detector::least_answering(Ranks partners, std::int32_t hub) const {
  std::map<std::int64_t, Ranks> by_unanswered;
  for (const std::int32_t number : partners) {
    const std::optional<std::int64_t> open = unanswered(*rank(number), *rank(hub));
    if (!open) return partners;
    by_unanswered[*open].push_back(number);
  }
  const bool one = by_unanswered.size() == 2 && by_unanswered.rbegin()->second.size() == 1 && partners.size() > 2;
  return one ? by_unanswered.rbegin()->second : partners;
}

/// For a rank of the cycle that receives from any source: the ranks that wait for a message from it on the same
/// communicator, so that their own message is the one that is missing. If the others have answered equally many of its
/// messages, only the one that has answered less.
Ranks Detector::silent_partners(const Ranks& cycle) const {
  Ranks result;
  for (const std::int32_t number : cycle) {
    Ranks partners;
    for (const ThreadWait& thread : graph_.find(number)->threads)
      for (const WaitCondition& condition : thread.conditions) {
        if (condition.kind != WaitKind::any || condition.ranks.size() < 2) continue;
        for (const std::int32_t target : condition.ranks)
          if (const WaitCondition* const back = graph_.edge(target, number);
              back && back->kind == WaitKind::all && is_message(*back) && back->communicator == condition.communicator)
            partners.push_back(target);
      }
    partners = least_answering(std::move(partners), number);
    result.insert(result.end(), partners.begin(), partners.end());
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

/// A message with another tag than the one that a rank of `waiters` waits for. `certain`: the ranks wait in any case,
/// so a message explains nothing that may be complete although its call waits for others.
std::optional<TagMismatch> Detector::tag_mismatch_among(const Ranks& waiters, bool certain,
                                                        bool any_communicator) const {
  for (const std::int32_t waiter : waiters) {
    std::optional<Receives> receives;
    for (const ThreadWait& thread : graph_.find(waiter)->threads)
      for (const WaitCondition& condition : thread.conditions) {
        if (condition.matched || (certain && !condition.required) || !is_message(condition)) continue;
        if (!receives) receives.emplace(*rank(waiter));
        for (const std::int32_t target : condition.ranks)
          if (const RankSnapshot* const other = rank(target); other && target != waiter)
            if (const auto found = receives->find_mismatch(*other, any_communicator)) return found;
      }
  }
  return std::nullopt;
}

/// A message that one of `waiters` waits for and that was sent to another rank, or by another one.
std::optional<WrongPeer> Detector::wrong_peer_among(const Ranks& waiters) const {
  std::optional<Members> members;
  for (const std::int32_t waiter : waiters)
    for (const ThreadWait& thread : graph_.find(waiter)->threads)
      for (const WaitCondition& condition : thread.conditions) {
        if (!condition.required || !condition.receives || condition.ranks.size() != 1 || !is_message(condition))
          continue;
        const RankSnapshot* const sender = rank(condition.ranks.front());
        if (!sender || sender->world_rank == waiter) continue;
        if (!members) members.emplace(ranks_);
        if (const auto found = Receives(*rank(waiter)).find_wrong_peer(*sender, *members)) return found;
      }
  return std::nullopt;
}

/// A collective call that a rank of `group`, which waits for a message, has left out, and in which a rank waits for it.
std::optional<OmittedCall> Detector::omitted_among(const Ranks& group) const {
  std::set<const void*> visited;
  for (const std::int32_t number : diagnosis_.deadlocked)
    for (const ThreadWait& waiting : graph_.find(number)->threads)
      for (const WaitCondition& collective : waiting.conditions) {
        if (!collective.required || collective.ordinal == 0 || !visited.insert(collective.ranks.id()).second) continue;
        for (const std::int32_t target : collective.ranks) {
          if (!std::binary_search(group.begin(), group.end(), target)) continue;
          for (const ThreadWait& thread : graph_.find(target)->threads)
            for (const WaitCondition& condition : thread.conditions)
              if (condition.required && is_message(condition))
                if (const auto found = omitted_call(*rank(target), collective, condition.receives)) return found;
        }
      }
  return std::nullopt;
}

/// A collective call in which others wait for a rank of `group`, which is in a collective call on another communicator.
/// A rank that has come there, too, has made it before, and so have most of those that have come to either.
std::optional<OmittedCall> Detector::omitted_by_one_of(const Ranks& group) const {
  const auto on = [](const RankSnapshot& rank, const WaitCondition& call) -> const CommunicatorSnapshot* {
    const auto at = std::find_if(rank.communicators.begin(), rank.communicators.end(),
                                 [&](const auto& its) { return its.uid == call.communicator; });
    return at != rank.communicators.end() ? &*at : nullptr;
  };
  const auto has_begun = [](const CommunicatorSnapshot& its, const WaitCondition& call) {
    return static_cast<std::int32_t>(its.collectives - call.ordinal) >= 0;
  };
  const auto find = [&](const WaitCondition& omitted, std::int32_t by,
                        const WaitCondition& next) -> std::optional<OmittedCall> {
    std::int32_t witness = -1;
    std::size_t with = 0, without = 0;
    for (const RankSnapshot& each : ranks_) {
      const CommunicatorSnapshot *const first = on(each, omitted), *const second = on(each, next);
      if (!first || !second) continue;
      const bool made = has_begun(*first, omitted), has_come = has_begun(*second, next);
      if (made && has_come) witness = each.world_rank;
      with += made;
      without += !made && has_come;
    }
    if (witness < 0 || with <= without) return std::nullopt;
    OmittedCall found{by, omitted.function, omitted.communicator, omitted.ordinal};
    found.witness = witness;
    return found;
  };
  // A message that does not come would explain more.
  for (const std::int32_t waiter : group)
    for (const ThreadWait& waiting : graph_.find(waiter)->threads)
      if (std::any_of(waiting.conditions.begin(), waiting.conditions.end(), is_message)) return std::nullopt;
  for (const std::int32_t waiter : group)
    for (const ThreadWait& waiting : graph_.find(waiter)->threads)
      for (const WaitCondition& omitted : waiting.conditions) {
        if (omitted.ordinal == 0) continue;
        for (const std::int32_t by : omitted.ranks) {
          if (!std::binary_search(group.begin(), group.end(), by)) continue;
          for (const ThreadWait& thread : graph_.find(by)->threads)
            for (const WaitCondition& next : thread.conditions)
              if (next.ordinal != 0 && next.communicator != omitted.communicator)
                if (const auto found = find(omitted, by, next)) return found;
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
        if (probes_any(thread, condition)) continue;
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
  bool locks_outside = false;
  bool certain = true;       // each rank of the cycle waits in any case
  Ranks receivers, holders;  // of locks
  Ranks gone_on;             // those of whose message a rank waits, and that wait for something else than a message
  Ranks from_any;            // those that wait for a message from any of several ranks, which have all gone on
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const std::int32_t waiter = cycle[i], target = cycle[(i + 1) % cycle.size()];
    const WaitCondition* const why = graph_.edge(waiter, target);
    certain = certain && why && why->required;
    const bool outside = why && why->holds_lock;
    locks_outside = locks_outside || outside;
    if (outside || (why && kind_of(why->function, false) == CallKind::lock)) holders.push_back(target);
    if (!why || !is_message(*why)) continue;
    ++messages;
    if (why->receives)
      ++receives;
    else
      receivers.push_back(target);
    const WaitCondition* const next = graph_.edge(target, cycle[(i + 2) % cycle.size()]);
    if (next && is_message(*next)) continue;
    const std::vector<ThreadWait>& threads = graph_.find(waiter)->threads;
    if (why->ranks.size() > 1 ||
        std::any_of(threads.begin(), threads.end(), [&](const ThreadWait& thread) { return probes_any(thread, *why); }))
      from_any.push_back(waiter);
    else
      gone_on.push_back(target);
  }
  if (locks_outside) {
    std::sort(holders.begin(), holders.end());
    finding.culprits = std::move(holders);
    finding.held_up = held_up(finding.culprits, 0);
    finding.since = last_progress(cycle);
    finding.confidence = 0.9;  // a child process of the holder may release the lock of a file
    return finding;
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
  // If a rank of the group has gone past a collective call, the others wait rightly, unless one has sent or received
  // less than usual.
  if (omitting.empty()) finding.omitted = omitted_among(found.group);
  if (omitting.empty() && !finding.omitted) finding.omitted = omitted_by_one_of(found.group);
  // The whole group is searched, because the cycle may pass through a receive that is complete. But a sender that
  // itself waits for a message may yet send the one that is expected, so a contradiction elsewhere explains more.
  if (contradictions.empty()) finding.tags = tag_mismatch_among(found.group, certain, /*any_communicator=*/false);
  if (contradictions.empty() && certain && !finding.tags)
    finding.tags = tag_mismatch_among(found.group, certain, /*any_communicator=*/true);
  finding.wrong_peer = wrong_peer_among(found.group);
  const Ranks silent = silent_partners(cycle);
  // Other ranks that do not go on have a part in it, although the ranks of the group do not wait for them.
  Ranks stuck = diagnosis_.deadlocked;
  stuck.insert(stuck.end(), found.group.begin(), found.group.end());
  std::vector<EpochFault> epochs = epoch_faults_among(stuck);
  std::erase_if(epochs, [&](const EpochFault& fault) {
    return !is_member(found.group, fault.mismatch.waiter) && !is_member(found.group, fault.mismatch.other);
  });
  const bool wrong_group =
      std::any_of(epochs.begin(), epochs.end(), [](const EpochFault& fault) { return fault.mismatch.group; });
  if (wrong_group) {
    finding.tags.reset();
    finding.omitted.reset();
    finding.wrong_peer.reset();
    explain(finding, epochs);
  } else if (finding.omitted) {
    finding.fault = Fault::mismatch;
    finding.culprits = {finding.omitted->by};
    finding.tags.reset();
    finding.wrong_peer.reset();
    finding.confidence = 0.8;  // or its numbers of messages differ for another reason, or it makes the call later
  } else if (finding.wrong_peer) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = {finding.wrong_peer->by_receiver ? finding.wrong_peer->to : finding.wrong_peer->from};
    finding.tags.reset();
    finding.confidence = 0.8;  // or the ranks are in different phases, with other partners
  } else if (finding.tags) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = {finding.tags->by_receiver ? finding.tags->to : finding.tags->from};
    // The tags also differ if the ranks are in different phases for another reason, so that the sender may yet send
    // the right one, unless it waits in a collective call.
    const RankWaits* const sender = graph_.find(finding.tags->from);
    const bool waits_for_message =
        !sender || std::any_of(sender->threads.begin(), sender->threads.end(), [](const auto& thread) {
          return thread.conditions.empty() ||
                 std::any_of(thread.conditions.begin(), thread.conditions.end(), is_message);
        });
    finding.confidence = finding.tags->left_out || !waits_for_message ? 0.8 : 0.7;
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
  } else if (!epochs.empty() && messages == 0) {
    explain(finding, epochs);
  } else if (!gone_on.empty()) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = gone_on;
    finding.confidence = 0.7;  // or the others make a collective call too many, or the message comes later
  } else if (!from_any.empty()) {
    finding.fault = Fault::unmatched_message;
    finding.culprits = from_any;
    finding.alone = true;
    finding.confidence = 0.6;  // or a rank has left out its message: which one, nothing tells
  } else if (receivers.size() == 1 && receives + 1 == cycle.size() && cycle.size() > 1) {
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

double Detector::limit_of_wait(const RankWaits& waits) const {
  const bool polls =
      std::any_of(waits.threads.begin(), waits.threads.end(), [](const ThreadWait& thread) { return thread.polling; });
  const bool locks =
      std::any_of(waits.threads.begin(), waits.threads.end(), [](const ThreadWait& thread) { return thread.may_end; });
  const RankSnapshot& each = ranks_[waits.snapshot];
  return polls || locks || each.may_be_helped ? limits_.working : 0;
}

void Detector::find_deadlocks(std::vector<Finding>& found) {
  for (const Diagnosis::Cycle& cycle : diagnosis_.cycles) {
    double shortest = now_, left = 0;  // that a rank waits; until it is clear that none of them does anything else
    bool ends_otherwise = false;       // as one that waits in MPI_Finalize, or that is not known
    for (const std::int32_t number : cycle.ranks) {
      const RankWaits* const waits = graph_.find(number);
      if (!waits) {
        ends_otherwise = true;
        break;
      }
      const RankSnapshot& each = ranks_[waits->snapshot];
      shortest = std::min(shortest, idle(each));
      ends_otherwise = ends_otherwise || each.state >= ProcessState::finalizing;
    }
    if (ends_otherwise || shortest < limits_.certain) continue;
    // A rank of the cycle may wait for any of several, also for one that polls.
    for (const std::int32_t number : cycle.group)
      if (const RankWaits* const waits = graph_.find(number))
        // Without a limit the wait can't end by itself, whatever processors the ranks have.
        if (const double limit = limit_of_wait(*waits); limit > 0)
          left = std::max(left, limit - served_idle(ranks_[waits->snapshot]));
    if (left <= 0) {
      found.push_back(finding_of_cycle(cycle));
    } else if (shortest >= limits_.computation) {
      Finding finding = finding_of_cycle(cycle);
      finding.cause = Cause::polling;
      finding.since = now_ - shortest;
      working_.push_back(std::move(finding));
    }
  }
}

}  // namespace bestride::inline telemetry
