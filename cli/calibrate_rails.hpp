// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of `bestride calibrate` that finds out whether local ranks are faster with a NIC each. From one host it can't be seen whether ranks on
// different NICs reach each other, nor whether the MPI library uses several by itself: so the nodes exchange the same bytes with rails and
// without, in jobs that take turns, since a rank's NIC is chosen before its MPI library starts.
#include <string>
#include <vector>

#include "cli/calibrate.hpp"
#include "model/rails.hpp"

namespace bestride {

struct RailsRun {
  bool two_hosts = false;  ///< else nothing was done
  bool decided = false;    ///< `rails` is what was found; else what is known of rails stands
  Rails rails;             ///< empty: none, or none that are faster
  std::string text;        ///< for the user, one line
};

/// Starts the measuring program by `launcher` with options.ranks ranks, four times for some seconds; those with rails have a time limit. Ends the command where the
/// program can't be started or fails without rails. `options.rails` is not "off".
RailsRun measure_rails(const CalibrateOptions& options, const std::vector<std::string>& launcher, const std::string& program);

}  // namespace bestride
