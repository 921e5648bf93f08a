// SPDX-License-Identifier: Apache-2.0
#pragma once
// The output of --list.
#include <string>

#include "options.hpp"

namespace fault_lab {

/// Rank, step, phase and culprits are those of a run with these options on `ranks` ranks.
std::string list_as_text(const Options& options, int ranks);
std::string list_as_json(const Options& options, int ranks);

}  // namespace fault_lab
