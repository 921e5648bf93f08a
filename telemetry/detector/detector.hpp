// SPDX-License-Identifier: Apache-2.0
#pragma once
// Detector: from observations of the ranks of a job to findings.
//
// Each observation is one snapshot of every rank and the time at which it was taken. The detector has no clock and does
// no I/O, so recorded or generated jobs replay exactly. A finding needs evidence that cannot be a normal phase of a
// program: a process that has ended, a cycle of waiting ranks, different collective calls, or a wait that lasts longer
// than a limit and longer than three times the longest completed wait of this job. Ranks that make progress are never
// part of it, except in a starvation.
// Sources: the four classes of C4 (Dong et al., HPCA 2025); AND and OR edges as in MUST (Hilbrich et al., EuroMPI
// 2012); confirmation by a repeated query as in NCCL RAS.
#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "telemetry/detector/epoch_faults.hpp"
#include "telemetry/detector/finding.hpp"
#include "telemetry/detector/slow_communication.hpp"
#include "telemetry/detector/slow_ranks.hpp"
#include "telemetry/record/snapshot.hpp"
#include "telemetry/waits/diagnosis.hpp"
#include "telemetry/waits/reduction_history.hpp"
#include "telemetry/waits/wait_graph.hpp"

namespace bestride::inline telemetry {

struct Observation {
  double seconds = 0;  ///< when the snapshots were taken; never less than before
  std::span<const RankSnapshot> ranks;
  bool last = false;  ///< no observation follows, so nothing is postponed
  /// Ranks that have ended before their first MPI call, as AbsentRanks::ended.
  std::span<const std::int32_t> ended_before = {};
};

/// Seconds without progress after which a state counts.
struct Limits {
  double stopped = 1;           ///< a process that a signal or a debugger has stopped
  double certain = 1;           ///< deadlock, mismatch: can't end by itself
  double computation = 4;       ///< a rank outside MPI for which most others wait, and which is blocked
  double working = 60;          ///< such a rank that computes, sleeps for a time, or moves data: this may be its work;
                                ///< or if no rank does anything and none waits for another one
  double few_waiting = 20;      ///< such a rank if fewer ranks wait than are waited for, or any one of several would do
  double uninterruptible = 30;  ///< such a rank that waits in the kernel for a device or a file system
  double communication = 10;    ///< all ranks are in their calls
  double starvation = 4;        ///< the ranks that are waited for make other calls: no fault before `working`
  double unheard = 5;           ///< an agent on another host does not answer
};

/// Not thread-safe.
class Detector {
 public:
  explicit Detector(const Limits& limits = {}) : limits_(limits) {}

  /// The findings that hold now, the most important first; empty: nothing is wrong, or not yet certain. A crash holds
  /// until the end of the job.
  std::vector<Finding> observe(const Observation& observation);

  /// Stacks show that the MPI library has called a function of the program in these ranks, as one of MPI_Op_create or
  /// MPI_Comm_create_keyval: until they make another call, they count as outside MPI, and a communication hang that was
  /// found does not hold. False if this was known of all of them.
  bool call_back(const std::vector<std::int32_t>& ranks);

  /// Ranks that compute, sleep or move data outside MPI while others wait for them, for at least Limits::computation,
  /// or all ranks that do nothing, for at least Limits::few_waiting: no faults yet, and perhaps none. Findings of class
  /// computation_hang, one for each cause, or starvation, of the last observation.
  const std::vector<Finding>& working() const noexcept { return working_; }

  /// True if a rank makes no progress, so that observe() should be called again soon.
  bool suspects() const noexcept { return suspects_; }
  /// True if there is a finding that the next observation may confirm.
  bool awaits_confirmation() const noexcept { return unconfirmed_; }
  /// Longest completed wait of a rank for another rank, in seconds.
  double longest_wait() const noexcept { return longest_wait_; }

 private:
  struct ThreadUse {
    unsigned slot = 0;
    std::uint64_t polls = 0;
    double cpu_seconds = 0;
    char state = '?';
  };
  struct History {
    std::uint64_t calls = 0;
    double progressed = 0;                ///< when `calls` last changed
    double paused = 0;                    ///< seconds since then in which the job was paused
    double lost_before = 0;               ///< `lost_` when `calls` last changed
    double active_since = 0;              ///< since when `calls` has changed at least every `active_window` seconds
    double observed = 0;                  ///< time of the last observation
    ProcessUse use;                       ///< at the last observation
    double used_at = 0;                   ///< when it was looked at
    double cpu_share = 0;                 ///< of one core, before the last observation
    double transferred = -1, slept = -1;  ///< when io_bytes and sleeps last changed
    double held_since = -1;               ///< when it was first seen as stopped or traced; -1: it is not
    double quiet_since = 0;               ///< since when it has done nothing: no call, no work
    double worked = 0;                    ///< CPU seconds since then, without those of polling
    bool polls = false;                   ///< its polling calls found nothing between the last two observations
    std::uint64_t children = 0;           ///< as ProcessWait, at the last observation
    std::vector<ThreadUse> threads;       ///< at the time of `use`
    bool waited = false;                  ///< it waited for another rank at the last observation
    bool called_back = false;             ///< as call_back() said, and it has made no call since
    int lock_holder = 0;                  ///< as ProcessWait, at the last observation
    double lock_since = 0;                ///< since when it waits for that lock without a break
    std::optional<Cause> hangs;           ///< why, if it was found to hang outside MPI and has made no call since
  };

  /// A rank that has made no call for so many seconds does not make other calls instead of the one that is waited for.
  static constexpr double active_window = 2;

  void update(const Observation& observation);
  /// A lock may be held for a moment only, again and again.
  void forget_short_lock_waits();
  /// Whether the rank has worked outside MPI since `history.use` was taken.
  static bool has_worked(const RankSnapshot& rank, double now, History& history);
  /// Seconds before now in which nothing can be said of the job: ranks were held, as by a debugger, and are no more, or
  /// the observer did not observe, probably because it was stopped together with them.
  double pause(double since_last);
  /// The history of an element of `ranks_`.
  History& history(const RankSnapshot& rank) { return *present_[static_cast<std::size_t>(&rank - ranks_.data())]; }
  const History& history(const RankSnapshot& rank) const {
    return *present_[static_cast<std::size_t>(&rank - ranks_.data())];
  }
  /// Seconds without progress in which the job was not paused.
  double idle(const RankSnapshot& rank) const { return now_ - history(rank).progressed - history(rank).paused; }
  /// Seconds for which a rank has waited for others: outside MPI, for the lock that one of them holds.
  double waited(const RankSnapshot& rank) const {
    return rank.wait.holder == 0 ? idle(rank) : std::min(idle(rank), now_ - history(rank).lock_since);
  }
  /// Seconds without progress in which the ranks also had processors; for a state that may end by itself if they have.
  double served_idle(const RankSnapshot& rank) const { return idle(rank) - (lost_ - history(rank).lost_before); }
  /// How many of the `seconds` since `history.use` was taken the rank has lacked a processor.
  static double lost_seconds(const RankSnapshot& rank, double seconds, const History& history);
  /// A limit, or three times the longest completed wait.
  double adapted(double limit) const { return std::max(limit, 3 * longest_wait_); }

  void find_crashes(std::vector<Finding>& found);
  std::vector<CollectiveMismatch> mismatches_before(const Finding& crash);
  /// The MPI error that was noted first in this job. Unless another rank ended before, no order of ends overrides it.
  std::optional<Finding> noted_end() const;
  /// True if a rank without such a note ended before `noted`, seconds of the observer's clock.
  bool preceded(double noted, const RankSnapshot& first) const;
  /// The finding about the rank whose end made the launcher end the others, of those that have noted nothing of their
  /// end.
  std::optional<Finding> first_end();
  std::optional<Finding> failed_start() const;
  void find_stopped(std::vector<Finding>& found) const;
  void find_unreachable(std::vector<Finding>& found) const;
  void find_mismatches(const std::vector<CollectiveMismatch>& mismatches, bool certain,
                       std::vector<Finding>& found) const;
  void find_left_early(std::vector<Finding>& found) const;
  void find_missing(std::vector<Finding>& found);
  /// Ranks that have not ended after MPI_Finalize, although others have.
  void find_unended(std::vector<Finding>& found);
  /// Seconds that a rank outside MPI may go on in this way while others wait for it.
  double limit_of(Cause cause) const;
  /// Seconds for which a rank that waits may yet do something else: while it polls, it may look for other events, too,
  /// as a time or what another thread says; with MPI_THREAD_MULTIPLE, another thread may call MPI, also one that sleeps
  /// outside MPI now. Else 0.
  double limit_of_wait(const RankWaits& waits) const;
  void find_deadlocks(std::vector<Finding>& found);
  void find_computation_hangs(std::vector<Finding>& found);
  /// All ranks, if none of them does anything and none waits for another one.
  void find_quiet_job(std::vector<Finding>& found);
  /// Since when and why that is so.
  std::optional<Finding> quiet_job() const;
  Cause quiet_cause(const RankSnapshot& rank) const;
  void find_communication_hangs(std::vector<Finding>& found);
  double seconds_since_others(const RankSnapshot& of) const;
  std::vector<std::int32_t> partitioned_senders() const;
  void find_starvation(std::vector<Finding>& found);
  /// Ascending. `least_wait`: of the senders whose messages they pass over, in seconds.
  std::vector<std::int32_t> ranks_that_pass_over_messages(double least_wait) const;
  void find_slow(std::vector<Finding>& found);
  void find_slow_communication(bool interrupted, std::vector<Finding>& found);

  const RankSnapshot* rank(std::int32_t number) const;
  /// What a rank outside MPI does.
  Cause cause_of(const RankSnapshot& rank) const;
  /// The ranks that wait for `targets`, directly or through others, and have waited for at least `seconds`.
  std::vector<std::int32_t> held_up(const std::vector<std::int32_t>& targets, double seconds) const;
  double last_progress(const std::vector<std::int32_t>& ranks) const;
  /// Those of the ranks `gone`, which have ended, that were not waiting for other ranks.
  std::vector<std::int32_t> not_waiting(const std::vector<std::int32_t>& gone) const;
  std::vector<std::int32_t> suspects_among(const std::vector<std::int32_t>& gone) const;
  bool has_remote_ranks() const;
  /// True if, in a job with other hosts, a live process has no rank yet or its host has not answered recently.
  bool has_unknown_ranks() const;
  std::int32_t first_idle(const std::vector<std::int32_t>& gone) const;
  /// The ranks as if all had ended: the state in which the job was.
  std::vector<RankSnapshot> last_state() const;
  std::vector<std::int32_t> least_answering(std::vector<std::int32_t> partners, std::int32_t hub) const;
  std::vector<std::int32_t> silent_partners(const std::vector<std::int32_t>& cycle) const;
  std::optional<TagMismatch> tag_mismatch_among(const std::vector<std::int32_t>& waiters, bool certain,
                                                bool any_communicator) const;
  std::optional<WrongPeer> wrong_peer_among(const std::vector<std::int32_t>& waiters) const;
  std::optional<OmittedCall> omitted_among(const std::vector<std::int32_t>& group) const;
  std::optional<OmittedCall> omitted_by_one_of(const std::vector<std::int32_t>& group) const;
  /// Pairs of ranks of a group of which the first waits for a message from or to the second, which waits for the first
  /// in a collective call: neither can come to what the other one waits for, whatever other ranks do.
  struct Contradiction {
    std::int32_t waiter, peer;
    bool receives;
  };
  std::vector<Contradiction> contradictions_in(const std::vector<std::int32_t>& group) const;
  std::optional<Finding> probable_deadlock() const;
  Finding finding_of_cycle(const Diagnosis::Cycle& found) const;
  /// Empty if none of the ranks waits in a call of an epoch.
  std::vector<EpochFault> epoch_faults_among(const std::vector<std::int32_t>& numbers) const;
  static void explain(Finding& finding, const std::vector<EpochFault>& faults);
  std::vector<std::int32_t> minority_of(const std::vector<std::int32_t>& cycle) const;

  const Limits limits_;
  double now_ = 0;
  double longest_wait_ = 0;
  double longest_quiet_ = 0;  ///< for which no rank did anything, and which ended by itself
  double quiet_ = 0;          ///< the same, until now; 0: a rank does something
  double lost_ = 0;           ///< seconds so far by which a rank has lacked a processor
  double lost_before_quiet_ = 0;
  bool last_ = false, suspects_ = false, unconfirmed_ = false;
  std::vector<std::int32_t> ended_before_, ended_last_;  ///< before their first call: in both observations; in the last
  bool held_ = false, paused_ = false;                   ///< ranks are held; the job was paused before this observation
  double held_since_ = 0, usual_period_ = 0;             ///< the period between observations
  int postponed_ = 0;                                    ///< observations for which a crash was not reported
  std::unordered_map<ProcessKey, History, ProcessKeyHash> histories_;
  std::map<std::int32_t, double> minority_since_;  ///< ranks outside MPI that at least as many others wait for
  std::vector<Finding> crashes_;                   ///< and what led to them
  FinishedCollectives collectives_;
  ReductionHistory reductions_;
  std::vector<CollectiveMismatch> wrong_calls_;  ///< of calls that have ended; only the first one of the job
  SlowRanks slow_ranks_;
  SlowCommunication slow_communication_;
  std::vector<Finding> working_;
  std::vector<Finding> candidates_;  ///< of the last observation, to be confirmed by the next one

  // Of the current observation.
  std::span<const RankSnapshot> ranks_;
  std::vector<History*> present_;  ///< of each of `ranks_`
  WaitGraph graph_;
  Diagnosis diagnosis_;
  std::optional<Waiters> waiters_;
};

}  // namespace bestride::inline telemetry
