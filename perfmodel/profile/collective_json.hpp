// SPDX-License-Identifier: Apache-2.0
#pragma once
// The section `collectives` of the profile file (docs/profile.md). Private to perfmodel/profile/file.cpp; may throw.
#include <string>

#include "perfmodel/collective/measurements.hpp"
#include "perfmodel/profile/json_points.hpp"

namespace bestride::inline perfmodel {

Json json_of(const CollectiveMeasurements& measured);
/// Returns "" or what is wrong with an entry.
std::string read_collectives(const Json& section, CollectiveMeasurements* measured);

}  // namespace bestride::inline perfmodel
