// SPDX-License-Identifier: Apache-2.0
#pragma once
// Questions about a finding that its texts ask.
#include "cli/job/job_view.hpp"
#include "telemetry/detector/finding.hpp"

namespace bestride::inline cli {

/// `one` if there is one culprit.
const char* plural(const Finding& finding, const char* one, const char* many);

/// What the first culprit of a crash has noted of its end in this way; null if it has not.
const EndSnapshot* noted(const Finding& finding, const JobView& view, EndKind kind);

/// How a crashed rank ended, as of waitpid; -1: not known, or no crash.
int wait_status(const Finding& finding, const JobView& view);

}  // namespace bestride::inline cli
