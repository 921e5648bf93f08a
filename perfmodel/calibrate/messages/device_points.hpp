// SPDX-License-Identifier: Apache-2.0
#pragma once
// The points of a GPU's plan, measured by one process without MPI.
#include "perfmodel/calibrate/common/point_run.hpp"
#include "perfmodel/calibrate/device/device_point.hpp"

namespace bestride::inline perfmodel {

class DevicePoints : public PointSet {
 public:
  /// `limit`: maximum duration of a batch of samples, in seconds. The session must outlive this.
  DevicePoints(const GpuSession& session, std::vector<DevicePoint> plan, double limit)
      : session_(session), plan_(std::move(plan)), measurer_(session, limit) {}
  std::size_t size() const override { return plan_.size(); }
  std::string id(std::size_t i) const override { return plan_[i].id(); }
  Result<bool> measure(std::size_t i, StateWriter* state) override;

 private:
  const GpuSession& session_;
  const std::vector<DevicePoint> plan_;
  DeviceMeasurer measurer_;
};

}  // namespace bestride::inline perfmodel
