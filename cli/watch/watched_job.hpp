// SPDX-License-Identifier: Apache-2.0
#pragma once
// WatchedJob: one job of the launcher, from its first record to its end.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/job/job_view.hpp"
#include "telemetry/detector/detector.hpp"

namespace bestride::inline cli {

/// A finding and what became of it.
struct Reported {
  Finding finding;
  double found = 0;  ///< seconds since the launcher was started
  double ended = 0;  ///< when it did not hold any more; 0: it still holds
};

class WatchedJob {
 public:
  /// `folder`: of all records; `name`: of the job; `started`: when the launcher was started, seconds of the system's
  /// clock (CLOCK_REALTIME).
  WatchedJob(std::string folder, std::string name, double started)
      : folder_(std::move(folder)), name_(std::move(name)), started_(started) {}
  ~WatchedJob();
  WatchedJob(const WatchedJob&) = delete;
  WatchedJob& operator=(const WatchedJob&) = delete;

  /// Takes a snapshot and passes it to the detector. `seconds`: since the launcher was started. Returns the indices in
  /// reported() of findings that are new, or that ended.
  struct Changes {
    std::vector<std::size_t> begun, ended;
  };
  Changes observe(double seconds);

  const std::string& name() const noexcept { return name_; }
  double started() const noexcept { return started_; }
  const JobView& view() const noexcept { return view_; }
  const std::vector<Reported>& reported() const noexcept { return reported_; }
  bool suspects() const noexcept { return detector_.suspects(); }
  /// Processes that had a record, also those whose record is removed.
  std::size_t processes() const noexcept { return processes_.size(); }
  /// True if no process of the job is left.
  bool ended() const noexcept { return view_.ended(); }

  /// Descriptors that become readable when a process of the job ends (pidfd_open).
  std::vector<int> process_descriptors() const;
  /// Looks which processes have ended. Called when one of the descriptors is readable, before observe().
  void note_ends(double seconds);
  /// Removes the records of processes that have ended.
  void remove_records() const;

 private:
  struct Process {
    int descriptor = -1;
    int wait_status = -1;
    double ended = 0;
  };
  const std::string folder_, name_;
  const double started_;
  Detector detector_;
  JobView view_;
  std::vector<Reported> reported_;
  std::map<int, Process> processes_;  ///< by pid
};

}  // namespace bestride::inline cli
