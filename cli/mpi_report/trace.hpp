// SPDX-License-Identifier: Apache-2.0
#pragma once
// The last calls of all ranks in the trace format of Chrome, which Perfetto (https://ui.perfetto.dev) opens.
#include <string>
#include <vector>

#include "cli/job/job_view.hpp"
#include "cli/mpi_report/mpi_report.hpp"

namespace bestride::inline cli {

/// A finished call that was timed, or one that did not return.
struct TimelineCall {
  const RankSnapshot* rank = nullptr;
  const ThreadSnapshot* thread = nullptr;
  const CallSnapshot* call = nullptr;
  double begin = 0, end = 0;  ///< seconds, CLOCK_REALTIME
};
/// The last `most` calls of each rank, by rank, thread and time. Calls that were not timed are left out. The result
/// points into `view`.
std::vector<TimelineCall> timeline(const JobView& view, std::size_t most);

/// A complete event for each call, a flow arrow for each message whose send and receive can be matched, an instant for
/// each finding. A process of the trace is a host, a thread a thread of a rank; times are microseconds after the first
/// call shown.
std::string chrome_trace(const JobView& view, const MpiReport& report, CallSites& places);

}  // namespace bestride::inline cli
