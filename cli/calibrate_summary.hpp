// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `bestride calibrate` says at its end: a few lines on stdout.
#include "cli/calibrate_measure.hpp"
#include "perfmodel/profile.hpp"

namespace bestride {
void print_summary(const MeasureRun& run, const MachineProfile& profile);
}
