// SPDX-License-Identifier: Apache-2.0
// Ranks that have ended, that are stopped from outside, or whose host does not answer.
#include <map>

#include "telemetry/detector/detector.hpp"
#include "telemetry/detector/rank_facts.hpp"
#include "telemetry/waits/amounts.hpp"
#include "telemetry/waits/collective_progress.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr int sigill = 4, sigabrt = 6, sigbus = 7, sigfpe = 8, sigkill = 9, sigsegv = 11, sigterm = 15;
/// Seconds between the end of a rank that crashed and the end of one that the launcher ended for that reason, in either
/// order: a process closes its connection to the launcher before it is gone, and may wait for a processor in between
/// (20 ms with 4 ranks on 2 processors). Ends on other hosts are known less exactly.
constexpr double together_here = 0.05, together_elsewhere = 0.5;
/// Observations for which a crash is not reported while all ended ranks were waiting for others: the rank that they
/// waited for may have ended first.
constexpr int most_postponed = 2;
/// The same while a host has not answered recently.
constexpr int most_postponed_if_unknown = 8;

/// Seconds between the first of several ranks that note the same end and the others. The clocks of hosts differ.
constexpr double together_noted = 0.05;
/// When a rank has noted its end.
double noted_at(const RankSnapshot& rank) { return rank.realtime(rank.end->at); }

Cause cause_of_end(EndKind kind) {
  switch (kind) {
    case EndKind::mpi_error: return Cause::mpi_error;
    case EndKind::exception: return Cause::exception;
    case EndKind::signal:
    case EndKind::exit:
    case EndKind::system_exit: break;
  }
  return Cause::killed;
}

/// True if its wait status is known and is not that of a rank that a launcher killed.
bool ended_by_itself(const RankSnapshot& rank) {
  const int signal = rank.wait_status & 0x7f;
  return rank.wait_status >= 0 && signal != sigkill && signal != sigterm;
}

/// True if a signal that a faulty instruction or abort() causes has ended it.
bool has_crashed(const RankSnapshot& rank) {
  const int signal = rank.wait_status & 0x7f;
  return rank.wait_status >= 0 &&
         (signal == sigill || signal == sigabrt || signal == sigbus || signal == sigfpe || signal == sigsegv);
}

/// True if the MPI library has reported an error, of which mpi4py makes an exception.
bool is_of_mpi(const EndSnapshot& end) {
  return end.kind == EndKind::mpi_error ||
         (end.kind == EndKind::exception && end.text.starts_with("mpi4py.MPI.Exception"));
}

/// Without the calls that follow from an exception that nobody catches: those that Python's libraries make at its end.
void forget_calls_after_exception(RankSnapshot& rank) {
  if (!rank.end || rank.end->kind != EndKind::exception) return;
  const auto is_later = [at = rank.end->at](const CallSnapshot& call) { return call.entered >= at; };
  for (ThreadSnapshot& thread : rank.threads) {
    std::erase_if(thread.finished, is_later);
    if (thread.current && is_later(*thread.current)) thread.current.reset(), thread.in_mpi = false;
  }
  std::erase_if(rank.requests, [&](const RequestSnapshot& request) { return request.posted >= rank.end->at; });
}

}  // namespace

std::vector<RankSnapshot> Detector::last_state() const {
  std::vector<RankSnapshot> last(ranks_.begin(), ranks_.end());
  for (RankSnapshot& each : last) {
    each.alive = false;
    forget_calls_after_exception(each);
  }
  return last;
}

Ranks Detector::not_waiting(const Ranks& gone) const {
  const WaitGraph graph = find_waits(last_state());
  const bool partly_unknown = has_unknown_ranks();
  Ranks result;
  for (const std::int32_t number : gone) {
    const RankWaits* const waits = graph.find(number);
    // Whom it waits for may be a rank that is not known.
    if (waits && !waits->waits() && !(partly_unknown && is_in_call(*rank(number)))) result.push_back(number);
  }
  return result;
}

/// The ranks of `gone` that did not wait for others. With more ranks than processors, a rank may stay long in a call
/// that all members have made; it is not suspected if others were outside MPI.
Ranks Detector::suspects_among(const Ranks& gone) const {
  const Ranks idle = not_waiting(gone);
  Ranks outside;
  for (const std::int32_t number : idle)
    if (!is_in_call(*rank(number))) outside.push_back(number);
  return outside.empty() ? idle : outside;
}

bool Detector::has_remote_ranks() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const RankSnapshot& each) { return each.remote; });
}

bool Detector::has_unknown_ranks() const {
  return has_remote_ranks() && std::any_of(ranks_.begin(), ranks_.end(), [this](const RankSnapshot& each) {
           return each.alive && (each.world_rank < 0 || (each.unheard > 0 && each.unheard < limits_.unheard));
         });
}

/// The rank whose last call is the longest ago: a rank that crashed makes no more calls, while its launcher learns of
/// it and ends the others.
std::int32_t Detector::first_idle(const Ranks& gone) const {
  return *std::max_element(gone.begin(), gone.end(), [this](std::int32_t a, std::int32_t b) {
    const auto idle_seconds = [this](std::int32_t number) { return seconds_since_call(*rank(number), 1e9); };
    return idle_seconds(a) < idle_seconds(b);
  });
}

/// A rank that ended because of a signal of its own, or before the error was noted, was not ended because of the error;
/// on another host, the error may be the loss of that rank.
bool Detector::preceded(double noted, const RankSnapshot& first) const {
  const bool remote = has_remote_ranks();
  return std::any_of(ranks_.begin(), ranks_.end(), [&](const RankSnapshot& each) {
    if (&each == &first || each.world_rank < 0 || !each.gone() || each.has_fault()) return false;
    if (has_crashed(each)) return each.ended < noted + (remote ? together_elsewhere : together_here);
    return each.ended > 0 && each.ended < noted - (remote ? together_elsewhere : 0);
  });
}

std::optional<Finding> Detector::noted_end() const {
  const bool ending = std::any_of(ranks_.begin(), ranks_.end(), [](const RankSnapshot& each) {
    // Python lets its libraries call MPI_Finalize, which waits for the other ranks.
    const bool exception = each.has_fault() && each.end->kind == EndKind::exception;
    return each.world_rank >= 0 && (each.gone() || has_aborted(each) || exception);
  });
  if (!ending) return std::nullopt;  // error handlers may return, and a rank may be about to end
  const RankSnapshot* first = nullptr;
  for (const RankSnapshot& each : ranks_)
    if (each.world_rank >= 0 && each.has_fault() && (!first || noted_at(each) < noted_at(*first))) first = &each;
  if (!first || preceded(now_ - first->seconds_since(first->end->at), *first)) return std::nullopt;
  Finding crash;
  crash.fault = Fault::crash;
  crash.cause = cause_of_end(first->end->kind);
  // An error in a collective call may be reported by several of its members.
  for (const RankSnapshot& each : ranks_)
    if (each.world_rank >= 0 && each.has_fault() && each.end->kind == first->end->kind &&
        each.end->code == first->end->code && noted_at(each) < noted_at(*first) + together_noted)
      crash.culprits.push_back(each.world_rank);
  std::sort(crash.culprits.begin(), crash.culprits.end());
  crash.since = now_;
  crash.confidence = 1;
  crash.held_up = held_up(crash.culprits, 0);
  return crash;
}

/// Wrong collective calls from which the crash may follow: the MPI library ends a rank that finds an error in one.
std::vector<CollectiveMismatch> Detector::mismatches_before(const Finding& crash) {
  const std::vector<RankSnapshot> last = last_state();
  std::vector<CollectiveMismatch> mismatches = find_waits(last).mismatches;
  const RankSnapshot* const first = rank(crash.culprits.front());
  const bool has_error = first && first->has_fault() && is_of_mpi(*first->end);
  // Amounts that differ do no other harm.
  if (!has_error) std::erase_if(mismatches, [](const CollectiveMismatch& mismatch) { return !mismatch.pairs.empty(); });
  if (!mismatches.empty() || crash.cause == Cause::killed || crash.cause == Cause::aborted) return mismatches;
  // An error may also follow from a wrong call that has ended.
  const Members members(last);
  mismatches = collectives_.observe(members);
  if (mismatches.empty() && has_error) {
    CollectiveProgress progress(members);
    mismatches = find_different_amounts(members, progress, /*also_ended=*/true);
    std::erase_if(mismatches, [&](const CollectiveMismatch& mismatch) {
      return std::none_of(mismatch.pairs.begin(), mismatch.pairs.end(), [&](const auto& pair) {
        return is_member(crash.culprits, pair.from) || is_member(crash.culprits, pair.to);
      });
    });
  }
  if (mismatches.size() > 1) mismatches.resize(1);
  return mismatches;
}

void Detector::find_crashes(std::vector<Finding>& found) {
  if (crashes_.empty()) {
    std::optional<Finding> crash = noted_end();
    if (!crash) crash = first_end();
    if (!crash) crash = failed_start();
    if (crash) {
      find_mismatches(mismatches_before(*crash), true, crashes_);
      crashes_.push_back(std::move(*crash));
    }
  }
  found.insert(found.end(), crashes_.begin(), crashes_.end());
}

std::optional<Finding> Detector::first_end() {
  Ranks gone, aborted, known, first;
  double earliest = 0;
  for (const RankSnapshot& each : ranks_) {
    if (each.world_rank < 0 || each.has_fault()) continue;  // an error that it has noted came later; see noted_end()
    // The launcher ends the other ranks, perhaps before this one.
    if (has_aborted(each)) aborted.push_back(each.world_rank);
    if (!each.gone()) continue;
    gone.push_back(each.world_rank);
    if (each.ended > 0 && (first.empty() || each.ended <= earliest)) {
      if (each.ended < earliest) first.clear();
      earliest = each.ended;
      first.push_back(each.world_rank);
    }
  }
  if (gone.empty() && aborted.empty()) return std::nullopt;
  // The end of a rank is known later if it is on another host, or if the kernel still tears it down while its
  // launcher has already ended others; this is not so for a stopped rank.
  const bool remote = has_remote_ranks();
  const double together = remote ? together_elsewhere : together_here;
  // A rank that the launcher ends may also exit by itself, but later.
  double earliest_known = 0;
  for (const RankSnapshot& each : ranks_) {
    if (each.world_rank < 0 || each.has_fault() || !each.gone() || !ended_by_itself(each) ||
        each.ended > earliest + together)
      continue;
    if (known.empty() || each.ended < earliest_known)
      known = {each.world_rank}, earliest_known = each.ended;
    else if (each.ended == earliest_known)
      known.push_back(each.world_rank);
  }
  const bool in_order = !remote && std::all_of(ranks_.begin(), ranks_.end(), [](const RankSnapshot& each) {
    return !each.gone() || each.ended_in_order;
  });
  if (in_order && first.size() == 1) known = first;
  const bool all_gone = std::none_of(ranks_.begin(), ranks_.end(), [](const RankSnapshot& each) { return each.alive; });
  const bool unknown = has_unknown_ranks();
  const bool held =
      std::any_of(ranks_.begin(), ranks_.end(), [](const RankSnapshot& each) { return each.alive && is_held(each); });
  // A launcher may kill others while the kernel still tears down the crashed rank.
  const bool taken_down =
      postponed_ == 0 && std::any_of(graph_.ranks.begin(), graph_.ranks.end(), [this](const RankWaits& waits) {
        const RankSnapshot& each = ranks_[waits.snapshot];
        return each.alive && each.unheard == 0 && !is_in_call(each) && !waits.waits();
      });
  const bool may_have_followed =
      unknown || ((remote || !held) && !all_gone && (taken_down || not_waiting(gone).empty()));
  // Of a rank that ended while the observer looked, the next observation tells how and when.
  const bool unnoted = !first.empty() && std::any_of(ranks_.begin(), ranks_.end(), [](const RankSnapshot& each) {
    return each.gone() && !each.remote && each.world_rank >= 0 && each.ended == 0 && each.wait_status < 0;
  });
  if ((may_have_followed || unnoted) && aborted.empty() && known.empty() && !last_ &&
      ++postponed_ <= (unknown ? most_postponed_if_unknown : most_postponed)) {
    suspects_ = true;
    return std::nullopt;
  }
  Finding crash;
  crash.fault = Fault::crash;
  crash.cause = aborted.empty() ? Cause::killed : Cause::aborted;
  crash.culprits = !aborted.empty() ? aborted : !known.empty() ? known : !first.empty() ? first : gone;
  bool sure = crash.culprits.size() == 1;
  bool others_suspected = false;  // other suspects ended within `together` of the first end
  if (sure && aborted.empty() && known.empty()) {
    Ranks first_ones;
    for (const RankSnapshot& each : ranks_)
      // 0: its end was not noted yet
      if (each.gone() && each.world_rank >= 0 && !each.has_fault() && each.ended < earliest + together)
        first_ones.push_back(each.world_rank);
    const Ranks suspects = suspects_among(first_ones);
    sure = suspects.empty() || is_member(suspects, crash.culprits[0]);
    others_suspected = suspects.size() > 1;
    if (!sure) crash.culprits = suspects;
  }
  if (!sure) {
    const Ranks suspects = suspects_among(crash.culprits);
    crash.culprits = {first_idle(suspects.empty() ? crash.culprits : suspects)};
  }
  // It may have ended because of the process of which nothing is known.
  if (unknown && aborted.empty() && known.empty() && not_waiting(crash.culprits).empty()) sure = false;
  crash.since = now_;
  crash.confidence = sure && !others_suspected ? 1 : 0.6;
  // A rank that has not ended by exit() after MPI_Finalize was killed, or called _exit(). If it was killed, its
  // launcher has ended the others.
  const RankSnapshot* finalized = nullptr;
  for (const RankSnapshot& each : ranks_)
    if (aborted.empty() && each.world_rank >= 0 && each.state == ProcessState::finalized && !each.alive && !each.end &&
        each.wait_status != 0 && each.ended > 0 && each.ended <= earliest && each.ended > earliest - together &&
        (!finalized || each.ended < finalized->ended))
      finalized = &each;
  if (finalized) {
    crash.culprits = {finalized->world_rank};
    crash.confidence = in_order && finalized->ended_in_order && finalized->wait_status > 0 ? 1 : 0.6;
  }
  // Some launchers kill the others when a rank ends by _exit() after MPI_Finalize.
  if (std::all_of(crash.culprits.begin(), crash.culprits.end(),
                  [this](std::int32_t number) { return is_killed_after_good_end(*rank(number), ranks_); }))
    crash.confidence = std::min(crash.confidence, 0.6);
  crash.held_up = held_up(crash.culprits, 0);
  return crash;
}

/// Of ranks that are all in MPI_Init or have ended there, the first one that has noted an error or a fault, or has
/// ended by itself: the launcher ends the others.
std::optional<Finding> Detector::failed_start() const {
  const RankSnapshot* first = nullptr;
  const auto is_before = [](const RankSnapshot& a, const RankSnapshot& b) {
    if (a.has_fault() != b.has_fault()) return a.has_fault();
    return a.has_fault() ? noted_at(a) < noted_at(b) : a.ended < b.ended;
  };
  Finding crash;
  for (const RankSnapshot& each : ranks_) {
    if (each.state != ProcessState::starting || each.launch_rank < 0) return std::nullopt;
    if (each.unrecorded) continue;
    if (each.alive || (!each.has_fault() && !(ended_by_itself(each) && each.wait_status != 0)))
      crash.held_up.push_back(each.launch_rank);
    else if (!first || is_before(each, *first))
      first = &each;
  }
  if (!first) return std::nullopt;
  std::sort(crash.held_up.begin(), crash.held_up.end());
  crash.fault = Fault::crash;
  crash.cause = first->has_fault() ? cause_of_end(first->end->kind) : Cause::killed;
  crash.culprits = {first->launch_rank};
  crash.since = now_;
  crash.confidence = first->has_fault() ? 1 : 0.9;
  return crash;
}

void Detector::find_stopped(std::vector<Finding>& found) const {
  std::map<Cause, Ranks> stopped;
  for (const RankWaits& waits : graph_.ranks) {
    const RankSnapshot& each = ranks_[waits.snapshot];
    if (!is_held(each) || std::min(idle(each), now_ - history(each).held_since) < limits_.stopped) continue;
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

void Detector::find_unreachable(std::vector<Finding>& found) const {
  Finding finding;
  for (const RankWaits& waits : graph_.ranks)
    if (ranks_[waits.snapshot].unheard >= limits_.unheard) finding.culprits.push_back(waits.rank);
  finding.held_up = held_up(finding.culprits, limits_.certain);
  // If only the agent has failed, no rank waits long for the ranks of its host.
  if (finding.held_up.empty()) return;
  finding.fault = Fault::unreachable;
  finding.since = now_;
  for (const std::int32_t culprit : finding.culprits)
    finding.since = std::min(finding.since, now_ - rank(culprit)->unheard);
  finding.confidence = 0.7;
  found.push_back(std::move(finding));
}

}  // namespace bestride::inline telemetry
