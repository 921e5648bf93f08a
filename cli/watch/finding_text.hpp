// SPDX-License-Identifier: Apache-2.0
#pragma once
// A finding as text: what, where, since when, on what evidence, and what to do next.
#include <string>
#include <vector>

#include "cli/job/job_stacks.hpp"
#include "cli/job/job_view.hpp"
#include "telemetry/detector/finding.hpp"

namespace bestride::inline cli {

/// "rank 3 (pid 4711 on node1) was ended by signal 11 (Segmentation fault) in advect (field.c:12)". `stacks`: of the
/// job, or null.
std::string headline(const Finding& finding, const JobView& view, const JobStacks* stacks);
/// One line about Detector::working(): "rank 0 (pid 4711 on node1) computes outside MPI for 12.1 s; ranks 1-3 wait".
std::string working_text(const Finding& finding, const JobView& view, double seconds);
/// One line about a finding that has ended by itself after `seconds`: "the job goes on: rank 3 (pid 4711 on node1) was
/// stopped by a signal for 4.2 s".
std::string over_text(const Finding& finding, const JobView& view, double seconds);
/// Facts that led to it, a line each.
std::vector<std::string> evidence(const Finding& finding, const JobView& view);

/// True if stacks help: the ranks are alive and go on waiting, or the culprit has left the stack of its crash.
bool wants_stacks(const Finding& finding, const JobView& view);
/// The ranks whose stacks help to understand a finding: of a crash, its culprits.
std::vector<RankSnapshot> ranks_with_stacks(const Finding& finding, const std::vector<RankSnapshot>& ranks);

/// The verdict as it is printed: at most 40 lines. `seconds`: since the finding's culprits made progress. `stacks`: of
/// the job, or null.
std::string finding_text(const Finding& finding, const JobView& view, const JobStacks* stacks, double seconds,
                         bool color);

}  // namespace bestride::inline cli
