// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of `bestride calibrate` that measures collectives between hosts.
#include <string>
#include <vector>

#include "cli/calibrate/calibrate.hpp"
#include "cli/calibrate/measure.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline cli {

/// `links`: only the links. `points`: all methods of each collective; the library must find the links in its profile.
enum class CollectivePart { links, points };

struct CollectiveRun {
  MeasureRun run;
  CollectiveMeasurements values;  ///< all values in the state file
};

/// Starts the measuring program by `launcher` with options.ranks_between_hosts() ranks, for at most `budget` seconds.
/// Resumes an earlier run. `profile`: the profile that the preloaded library reads. `rails`: NICs of which each local
/// rank gets one, if any. Ends the command if the program cannot be started or fails.
CollectiveRun measure_collectives(const CalibrateOptions& options, const std::vector<std::string>& launcher,
                                  const std::string& program, const std::string& profile, const Rails& rails,
                                  CollectivePart part, double budget);

/// Path of the file that keeps intermediate results.
std::string collective_state_path(const std::string& profile);

/// Prints a few lines: the link, and what would be chosen for the measured number of nodes and ranks.
void print_collectives(const CollectiveRun& run);

}  // namespace bestride::inline cli
