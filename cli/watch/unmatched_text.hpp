// SPDX-License-Identifier: Apache-2.0
#pragma once
// An unmatched message as text.
#include <string>

#include "cli/job/job_view.hpp"
#include "telemetry/detector/finding.hpp"

namespace bestride::inline cli {

/// "rank 1 sent rank 2 a message with tag 3 at halo (halo.c:12), but rank 2 waits for tag 4". `who`: the culprits.
std::string unmatched_headline(const Finding& finding, const JobView& view, const std::string& who);
/// What the user should do now; one line.
std::string unmatched_advice(const Finding& finding, const JobView& view);

}  // namespace bestride::inline cli
