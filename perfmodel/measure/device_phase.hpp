// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of a calibration that measures the GPU: the points of its plan that are not known yet, into the state file.
#include <functional>
#include <set>

#include "perfmodel/measure/device_point.hpp"
#include "perfmodel/measure/state.hpp"

namespace bestride {

struct DevicePhase {
  int measured = 0;
  int left_out = 0;     ///< for lack of time, or after trouble
  std::string trouble;  ///< why the rest of the points was given up; "": it was not
};

/// At most `budget` seconds. `on_point` before each.
DevicePhase measure_device(const GpuSession& session, const std::vector<DevicePoint>& plan, const std::set<std::string>& done, StateWriter& writer,
                           double budget, double limit, const std::function<void(const DevicePoint&)>& on_point);

}  // namespace bestride
