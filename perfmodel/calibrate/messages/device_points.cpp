// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/messages/device_points.hpp"

#include "perfmodel/calibrate/messages/state.hpp"

namespace bestride::inline perfmodel {

Result<bool> DevicePoints::measure(std::size_t i, StateWriter* state) {
  const Result<double> seconds = measurer_.measure(plan_[i]);
  if (!seconds) return seconds.error();
  if (state) write_device_point(*state, plan_[i], *seconds, session_.name(), session_.stand_in());
  return true;
}

}  // namespace bestride::inline perfmodel
