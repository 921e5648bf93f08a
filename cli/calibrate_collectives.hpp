// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of `bestride calibrate` that measures collectives between hosts.
#include <string>
#include <vector>

#include "cli/calibrate.hpp"
#include "cli/calibrate_measure.hpp"
#include "perfmodel/profile.hpp"

namespace bestride {

/// The links alone, or all ways of each collective, for which the library has to find the links in its profile.
enum class CollectivePart { links, points };

struct CollectiveRun {
  MeasureRun run;
  CollectiveMeasurements values;  ///< all that the state file has
};

/// Starts the measuring program by `launcher` with options.ranks ranks; at most `budget` seconds. Goes on where an earlier run ended.
/// `profile`: what the preloaded library reads. `rails`: each local rank takes one, if there are any. Ends the command where the program can't be started or fails.
CollectiveRun measure_collectives(const CalibrateOptions& options, const std::vector<std::string>& launcher, const std::string& program,
                                  const std::string& profile, const Rails& rails, CollectivePart part, double budget);

/// Where what is known so far is kept.
std::string collective_state_path(const std::string& profile);

/// A few lines: the link, and what would be chosen on as many nodes and ranks as were measured.
void print_collectives(const CollectiveRun& run);

}  // namespace bestride
