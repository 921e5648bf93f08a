// SPDX-License-Identifier: Apache-2.0
#pragma once
// WatchedJob: one job of the launcher, from its first record to its end.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/job/job_stacks.hpp"
#include "cli/job/job_view.hpp"
#include "cli/job/local_ranks.hpp"
#include "cli/watch/rank_updates.hpp"
#include "telemetry/detector/detector.hpp"
#include "telemetry/record/absent_ranks.hpp"

namespace bestride::inline cli {

/// A finding and what became of it.
struct Reported {
  telemetry::Finding finding;
  double found = 0;  ///< seconds since the launcher was started
  double ended = 0;  ///< when it did not hold any more; 0: it still holds
};

enum class JobPhase {
  running,
  over,         ///< there will be no other observation
  told_to_end,  ///< crashes are no faults, and no finding ends
  abandoned,    ///< the same, because its launcher was killed; but a fault of a rank is one
};

class WatchedJob {
 public:
  /// `name`: of the job, for people; `started`: when the launcher was started, seconds of the system's clock
  /// (CLOCK_REALTIME).
  WatchedJob(std::string name, double started, const Limits& limits = {})
      : name_(std::move(name)), started_(started), detector_(limits) {}
  WatchedJob(const WatchedJob&) = delete;
  WatchedJob& operator=(const WatchedJob&) = delete;

  /// The job has ranks on this host, in `folder`/`name`.
  void add_local(std::string folder, std::string name) {
    local_ = std::make_unique<LocalRanks>(std::move(folder), std::move(name));
  }
  /// Null if it has none.
  LocalRanks* local() const noexcept { return local_.get(); }

  /// Takes a snapshot of the ranks here, and passes it with those of other hosts to the detector. `seconds`: since the
  /// launcher was started. `phase` is called after that, because ranks may end in between. Returns the indices in
  /// reported() of findings that are new, or that ended.
  struct Changes {
    std::vector<std::size_t> begun, ended;
    int requested = 0;  ///< the signal with which the job was told to end, once; 0: it was not
  };
  Changes observe(double seconds, const std::function<JobPhase()>& phase, std::vector<HostUpdate> hosts = {});

  /// The stacks that were taken for the new finding `i` may show that it is none: then it is withdrawn, and those after
  /// it, which are found again. True if so.
  bool withdraw(std::size_t i, const JobStacks& stacks) {
    if (reported_[i].finding.fault != Fault::communication_hang || !detector_.call_back(stacks.called_back))
      return false;
    reported_.resize(i);
    return true;
  }

  const std::string& name() const noexcept { return name_; }
  double started() const noexcept { return started_; }
  const std::vector<RankSnapshot>& ranks() const noexcept { return view_.job.ranks; }
  /// Analyzed at the first call after an observation, because most observations have no finding.
  const JobView& view() const {
    if (!analyzed_) analyze(view_), analyzed_ = true;
    return view_;
  }
  const std::vector<Reported>& reported() const noexcept { return reported_; }
  /// Ranks that may be at work while others wait for them; see Detector::working().
  const std::vector<telemetry::Finding>& working() const noexcept { return detector_.working(); }
  bool suspects() const noexcept { return detector_.suspects(); }
  bool awaits_confirmation() const noexcept { return detector_.awaits_confirmation(); }
  /// Processes that had a record, also those whose record is removed.
  std::size_t processes() const noexcept { return processes_; }
  /// True if a process has ended as RankSnapshot::gone() says.
  bool any_gone() const noexcept {
    return std::any_of(ranks().begin(), ranks().end(), [](const RankSnapshot& rank) { return rank.gone(); });
  }
  /// True if no process of the job is left.
  bool ended() const noexcept { return view_.ended(); }

 private:
  /// Adds the processes of ranks that have no record yet.
  void add_absent(std::vector<RankSnapshot>& ranks, double seconds);
  /// True while a rank has ended by such a signal, and others may follow, or may have.
  bool may_be_requested(double seconds);

  const std::string name_;
  const double started_;
  std::unique_ptr<LocalRanks> local_;
  Detector detector_;
  mutable JobView view_;
  mutable bool analyzed_ = true;
  std::vector<Reported> reported_;
  telemetry::AbsentRanks absent_;
  double absent_at_ = -1;  ///< when they were looked for
  std::size_t processes_ = 0;
  int requested_ = 0;     ///< the signal with which the job was told to end
  double postponed_ = 0;  ///< since when that was not clear, as of observe(); 0: it always was
};

/// One line about a job that a signal has ended.
std::string requested_text(int signal);

}  // namespace bestride::inline cli
