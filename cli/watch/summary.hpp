// SPDX-License-Identifier: Apache-2.0
#pragma once
// A finding in plain words, for the line below its headline, and what to do next as data.
#include <string>
#include <vector>

#include "cli/job/call_site.hpp"
#include "cli/job/job_stacks.hpp"
#include "cli/job/job_view.hpp"
#include "telemetry/detector/finding.hpp"

namespace bestride::inline cli {

/// "7 of 8 ranks wait in MPI_Allreduce at solve (solver.f90:88). Rank 5 is in assemble (mesh.c:212): look there." One
/// line; "" if the headline says it all. `stacks`: of the job, or null.
std::string summary(const Finding& finding, const JobView& view, CallSites& sites, const JobStacks* stacks);

/// One check: a command that needs no root, what it shows if the check is passed, and what to do otherwise.
struct NextStep {
  std::string check, command, expected, otherwise;
};
/// The most useful one first; at most 3.
std::vector<NextStep> next_steps(const Finding& finding, const JobView& view);

}  // namespace bestride::inline cli
