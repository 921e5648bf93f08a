// SPDX-License-Identifier: Apache-2.0
#pragma once
// The section `one_node` of the profile file (docs/profile.md). Private to perfmodel/profile/file.cpp; may throw.
#include <string>

#include "perfmodel/collective/one_node_measurements.hpp"
#include "perfmodel/profile/json_points.hpp"

namespace bestride::inline perfmodel {

Json json_of(const OneNodeMeasurements& measured);
/// Returns "" or what is wrong with an entry.
std::string read_one_node(const Json& section, OneNodeMeasurements* measured);

}  // namespace bestride::inline perfmodel
