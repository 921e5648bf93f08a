// SPDX-License-Identifier: Apache-2.0
#pragma once
// JobOutputs: what is written of a watched job besides its verdicts: the report of MPI time and its files.
#include <map>
#include <set>
#include <string>

#include "cli/job/job_stacks.hpp"
#include "cli/mpi_report/mpi_report.hpp"
#include "cli/watch/watched_job.hpp"

namespace bestride::inline cli {

struct OutputOptions {
  bool report = false;         ///< text, and files *.report.json, *.report.html, *.trace.json, *.prom
  std::string folder;          ///< of the files; "": the working directory
  std::string metrics;         ///< path of the OpenMetrics file; "": in the folder, if there is a report
  double metrics_period = 15;  ///< seconds between two versions of that file
};

class JobOutputs {
 public:
  explicit JobOutputs(OutputOptions options) : options_(std::move(options)) {}

  /// Writes the metrics again if it is time. `seconds`: since the launcher was started.
  void refresh(const WatchedJob& job, double seconds);
  /// Writes the report and its files. Called at the end of the job, when its last look was taken. `stacks`: of the job,
  /// or null.
  void finish(const WatchedJob& job, int exit_code, const JobStacks* stacks);

 private:
  void write(const std::string& path, const std::string& text);
  std::string path_of(const WatchedJob& job, const char* ending) const;
  MpiReport report_of(const WatchedJob& job, CallSites& places, const JobStacks* stacks) const;
  void write_metrics(const WatchedJob& job, const std::string& text);

  const OutputOptions options_;
  std::map<std::string, double> refreshed_;  ///< by job: when its metrics were last written
  std::set<std::string> failed_;             ///< paths that can't be written: said once
};

}  // namespace bestride::inline cli
