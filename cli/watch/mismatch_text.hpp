// SPDX-License-Identifier: Apache-2.0
#pragma once
// Calls that do not match as text.
#include <string>
#include <vector>

#include "cli/job/job_view.hpp"
#include "telemetry/detector/finding.hpp"

namespace bestride::inline cli {

/// "rank 3 passes other arguments than the others to MPI_Bcast #4 on MPI_COMM_WORLD: root 2, not 0". `who`: the
/// culprits.
std::string mismatch_headline(const Finding& finding, const JobView& view, const std::string& who);
/// What each side has called, and where, a line each; empty if the finding has no such calls.
std::vector<std::string> mismatch_evidence(const Finding& finding, const JobView& view);
/// What the user should do now; one line.
std::string mismatch_advice(const Finding& finding);

}  // namespace bestride::inline cli
