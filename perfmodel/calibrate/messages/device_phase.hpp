// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of a calibration that measures the GPU: measures the points of its plan that are still missing and writes
// them to the state file.
#include <functional>
#include <set>

#include "perfmodel/calibrate/device/device_point.hpp"
#include "perfmodel/calibrate/messages/state.hpp"

namespace bestride {

struct DevicePhase {
  int measured = 0;
  int left_out = 0;     ///< because of the time limit, or after an error
  std::string trouble;  ///< why the remaining points were given up; "" if they were not
};

/// Takes at most `budget` seconds. Calls `on_point` before each point.
DevicePhase measure_device(const GpuSession& session, const std::vector<DevicePoint>& plan,
                           const std::set<std::string>& done, StateWriter& writer, double budget, double limit,
                           const std::function<void(const DevicePoint&)>& on_point);

}  // namespace bestride
