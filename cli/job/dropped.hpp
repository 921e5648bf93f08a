// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the records of a job could not hold, for people.
#include <string>
#include <vector>

#include "telemetry/record/snapshot.hpp"

namespace bestride::inline cli {

/// One line for each kind of entry that did not fit in the record of a rank; mostly none.
std::vector<std::string> dropped_lines(const std::vector<RankSnapshot>& ranks);

}  // namespace bestride::inline cli
