// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of `bestride calibrate` that determines whether local ranks are faster if each uses its own NIC (a rail).
// A single host cannot show whether ranks on different NICs reach each other, or whether the MPI library uses several
// NICs by default. So the nodes exchange the same bytes with rails and without, in alternating jobs, because a rank's
// NIC is chosen before its MPI library starts.
#include <string>
#include <vector>

#include "cli/calibrate/calibrate.hpp"
#include "model/rails.hpp"

namespace bestride::inline cli {

struct RailsRun {
  bool two_hosts = false;  ///< if false, nothing was measured
  bool decided = false;    ///< `rails` is the result; if false, the previous setting stays
  Rails rails;             ///< empty: no rails exist, or they are not faster
  std::string text;        ///< for the user, one line
};

/// Starts the measuring program by `launcher` with options.ranks_between_hosts() ranks, four times for some seconds
/// each; the jobs with rails have a time limit. Ends the command if the program cannot be started or fails without
/// rails. `options.rails` must not be "off".
RailsRun measure_rails(const CalibrateOptions& options, const std::vector<std::string>& launcher,
                       const std::string& program);

}  // namespace bestride::inline cli
