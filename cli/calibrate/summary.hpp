// SPDX-License-Identifier: Apache-2.0
#pragma once
// The final summary of `bestride calibrate`: a few lines on stdout.
#include "cli/calibrate/measure.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline cli {
void print_summary(const MeasureRun& run, const MachineProfile& profile);
}
