// SPDX-License-Identifier: Apache-2.0
#pragma once
// The section `gpu` of the profile file (docs/profile.md). Private to profile_file.cpp; may throw.
#include <string>

#include "perfmodel/device_costs.hpp"
#include "perfmodel/json_points.hpp"

namespace bestride {

Json json_of(const DeviceMeasurements& measured);
/// "" or what is wrong with an entry.
std::string read_device(const Json& section, DeviceMeasurements* measured);

}  // namespace bestride
