// SPDX-License-Identifier: Apache-2.0
#pragma once
// LocalRanks: the processes of one job on this host, from the first record to the last end.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "telemetry/record/reader.hpp"

namespace bestride::inline cli {

class LocalRanks {
 public:
  /// `folder`: of all records; `name`: of the job.
  LocalRanks(std::string folder, std::string name);
  ~LocalRanks();
  LocalRanks(const LocalRanks&) = delete;
  LocalRanks& operator=(const LocalRanks&) = delete;

  /// Reads the records, with `finished_calls` of each thread, and adds what is known of ends.
  JobSnapshot read(std::size_t finished_calls);
  const std::string& name() const noexcept { return name_; }
  /// Processes that had a record, also those whose record is removed.
  std::size_t processes() const noexcept { return processes_.size(); }

  /// Becomes readable when a process ends or is about to; -1: this is not available.
  int ends_descriptor() const noexcept { return ends_; }
  /// Checks which processes have ended; true if one has since the last call. Called when ends_descriptor() is readable,
  /// before read(), which checks again. `seconds`: now, of the observer's clock. Of processes that have ended since the
  /// last call, the one that ended first gets the earliest time. A process counts as ended from the moment at which it
  /// has closed its record while it ends.
  bool note_ends(double seconds);
  /// True if a rank has made no call for half a second. About 2 us for each rank; knows the ranks that read() has seen.
  bool suspects(double seconds);
  /// Sends SIGKILL to all processes that are alive here.
  void kill_all() const;
  /// Removes the records of processes that have ended.
  void remove_records(const std::vector<RankSnapshot>& ranks) const;

 private:
  struct Process {
    int descriptor = -1;  ///< pidfd
    bool awaited = false;
    int record = -1;          ///< its file
    std::uint64_t calls = 0;  ///< that suspects() has seen
    double progressed = 0;
    int wait_status = -1;
    double ended = 0;
    double closed = 0;  ///< its record; 0: not known
  };
  static constexpr int closes_event = -1;  ///< in place of a key
  /// The key of a process in processes_: its pid; for one in another pid namespace, where the pid may be that of
  /// another process here, a number below -1.
  int key_of(const RankSnapshot& rank);
  void await_end(int key, const RankSnapshot& rank, Process& process);
  /// Completes the snapshot of a process that has closed its record.
  static void note_closed(RankSnapshot& rank, Process& process) noexcept;
  bool take_ends();
  bool take_closes();
  /// Waits briefly for the end of the process that closed its record first, so that its wait status is known.
  void await_status();

  const std::string folder_, name_;
  double now_ = 1e-6;           ///< the last time given to note_ends(), or to an end
  bool ended_in_read_ = false;  ///< a process, since note_ends()
  /// The kernel reports events in the order in which they happened, which tells the rank that crashed from those that
  /// its launcher killed a moment later. poll() would not.
  const int ends_;                        ///< epoll of the processes' pidfds and of closes_
  const int closes_;                      ///< inotify of the records; -1: not available
  std::map<int, int> watches_;            ///< keys by the descriptors of their watches in closes_
  std::map<int, Process> processes_;      ///< by key
  std::map<std::string, int> elsewhere_;  ///< keys of processes of other pid namespaces, by the path of the record
};

}  // namespace bestride::inline cli
