// SPDX-License-Identifier: Apache-2.0
#pragma once
// The section `gpu` of the profile file (docs/profile.md). Private to perfmodel/profile/file.cpp; may throw.
#include <string>

#include "perfmodel/device/costs.hpp"
#include "perfmodel/profile/json_points.hpp"

namespace bestride::inline perfmodel {

Json json_of(const DeviceMeasurements& measured);
/// Returns "" or what is wrong with an entry.
std::string read_device(const Json& section, DeviceMeasurements* measured);

}  // namespace bestride::inline perfmodel
