// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of `bestride calibrate` that measures collectives within this host.
#include <string>
#include <vector>

#include "cli/calibrate/calibrate.hpp"
#include "cli/calibrate/measure.hpp"
#include "perfmodel/collective/one_node_measurements.hpp"

namespace bestride::inline cli {

struct OneNodeRun {
  MeasureRun run;
  OneNodeMeasurements values;  ///< empty: nothing was measured
  std::string left_out;        ///< why not; one line
};

/// Starts the measuring program by `launcher` for at most `budget` seconds, with options.ranks ranks, or with as many
/// as there are processors, 16 at most.
OneNodeRun measure_one_node(const CalibrateOptions& options, const std::vector<std::string>& launcher,
                            const std::string& program, double budget);

/// Prints which sizes will go through shared memory.
void print_one_node(const OneNodeRun& run);

}  // namespace bestride::inline cli
