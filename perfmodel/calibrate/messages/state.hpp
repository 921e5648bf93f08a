// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the state file (perfmodel/calibrate/common/state_file.hpp) contains of messages and of a GPU.
//
//   messages <configuration>            the subject
//   curve <call_class> <form> <bytes index> <ns>
//   grid <call_class> <class> <engine> <spread> <leaf> <bytes index> <block index> <ns>
//   gpu <0|1: stand-in> <name>          the GPU of the device record that follows; another GPU makes earlier ones void
//   device <point id> <ns>
#include <set>
#include <string>
#include <vector>

#include "perfmodel/calibrate/common/sample_plan.hpp"
#include "perfmodel/calibrate/common/state_file.hpp"
#include "perfmodel/calibrate/device/device_plan.hpp"

namespace bestride::inline perfmodel {

struct MessagesState {
  Measurements values;
  DeviceMeasurements device;
  std::string gpu;             ///< what `device` was measured on; "" if it was not measured
  std::set<std::string> done;  ///< ids of points

  /// Removes the points of the GPU.
  void clear_device();
};

std::string messages_subject(const std::string& configuration);

/// Returns an empty state if the file is missing, damaged, or of another configuration.
MessagesState read_messages_state(const std::string& path, const std::string& configuration);

/// `seconds`: in the order of series_at(point); for a contiguous point, in the order of ContiguousForm.
void write_point(StateWriter& state, const Point& point, const std::vector<double>& seconds);
void write_device_point(StateWriter& state, const DevicePoint& point, double seconds, const std::string& gpu,
                        bool stand_in);

}  // namespace bestride::inline perfmodel
