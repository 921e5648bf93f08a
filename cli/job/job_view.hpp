// SPDX-License-Identifier: Apache-2.0
#pragma once
// A job at one time: two samples of its records, which rank waits for which, and why.
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "telemetry/record/reader.hpp"
#include "telemetry/waits/diagnosis.hpp"
#include "telemetry/waits/wait_graph.hpp"

namespace bestride::inline cli {

/// What a rank did between the two samples.
enum class Activity : std::uint8_t {
  none,     ///< neither began a call nor waited in polling calls
  polling,  ///< made only polling calls that found nothing, and did not compute between them
  calling,  ///< began calls
};

struct JobView {
  JobSnapshot job;                   ///< the second sample
  std::vector<Activity> activities;  ///< of job.ranks
  WaitGraph graph;                   ///< of an ended job without waits
  Diagnosis diagnosis;

  bool progresses() const noexcept;  ///< a rank began calls
  bool ended() const noexcept;       ///< no rank is alive
};

/// `before`: an earlier sample of the same process, or null.
Activity activity_between(const RankSnapshot* before, const RankSnapshot& now);
/// `activities`: of now.ranks. Without graph and diagnosis.
JobView begin_view(JobSnapshot now, std::vector<Activity> activities);
/// Adds graph and diagnosis.
void analyze(JobView& view);

/// Looks twice at the jobs in `folder`, 100 ms apart. Running jobs come first, then those that have ended, the last to
/// begin first. `selection`: "" for all of them, the name of a job, or the pid of
/// one of its processes or of a process above these (the launcher). Errors: nothing is selected; those of read_jobs().
Result<std::vector<JobView>> observe_jobs(const std::string& folder, const std::string& selection,
                                          std::size_t finished_calls);

/// The error text for a selection that selects no job: says so, and what a selection may be.
std::string no_such_job_text(const std::string& selection);

/// The jobs that `selection` means; see observe_jobs().
std::vector<JobSnapshot> select_jobs(std::vector<JobSnapshot> jobs, const std::string& selection);

/// The snapshot of the rank with this number (number_of()); null if there is none. Of several, the one in the graph.
inline const RankSnapshot* find_rank(const JobView& view, std::int32_t number) noexcept {
  if (const RankWaits* const waits = view.graph.find(number)) return &view.job.ranks[waits->snapshot];
  for (const RankSnapshot& rank : view.job.ranks)
    if (number >= 0 && telemetry::number_of(rank) == number) return &rank;
  return nullptr;
}

}  // namespace bestride::inline cli
