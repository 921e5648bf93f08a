// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/messages/device_phase.hpp"

#include <chrono>

namespace bestride {

DevicePhase measure_device(const GpuSession& session, const std::vector<DevicePoint>& plan,
                           const std::set<std::string>& done, StateWriter& writer, double budget, double limit,
                           const std::function<void(const DevicePoint&)>& on_point) {
  DevicePhase phase;
  DeviceMeasurer measurer(session, limit);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(budget);
  for (const DevicePoint& point : plan) {
    if (done.count(point.id())) continue;
    if (!phase.trouble.empty() || std::chrono::steady_clock::now() > end) {
      ++phase.left_out;
      continue;
    }
    on_point(point);
    const Result<double> seconds = measurer.measure(point);
    if (!seconds) {
      phase.trouble = seconds.error().text;
      ++phase.left_out;
      continue;
    }
    writer.device(point, *seconds);
    ++phase.measured;
  }
  return phase;
}

}  // namespace bestride
