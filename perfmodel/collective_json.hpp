// SPDX-License-Identifier: Apache-2.0
#pragma once
// The section `collectives` of the profile file (docs/profile.md). Private to profile_file.cpp; may throw.
#include <string>

#include "perfmodel/collective_measurements.hpp"
#include "perfmodel/json_points.hpp"

namespace bestride {

Json json_of(const CollectiveMeasurements& measured);
/// "" or what is wrong with an entry.
std::string read_collectives(const Json& section, CollectiveMeasurements* measured);

}  // namespace bestride
