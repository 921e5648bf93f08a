// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the user should do now about a finding.
#include <string>

#include "cli/job/job_view.hpp"
#include "telemetry/detector/finding.hpp"

namespace bestride::inline cli {

/// One line.
std::string advice(const Finding& finding, const JobView& view);

}  // namespace bestride::inline cli
