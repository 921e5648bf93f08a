// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures one point of a GPU: the library's own transfers, from the call until they are known to be complete.
#include "perfmodel/calibrate/device/device_plan.hpp"
#include "perfmodel/calibrate/device/gpu_session.hpp"

namespace bestride::inline perfmodel {

class DeviceMeasurer {
 public:
  /// `limit`: maximum duration of a batch of samples, in seconds. The session must outlive the measurer.
  DeviceMeasurer(const GpuSession& session, double limit) : device_(session.device()), limit_(limit) {}
  ~DeviceMeasurer();
  DeviceMeasurer(const DeviceMeasurer&) = delete;
  /// Seconds. Errors: out of memory, a kernel that failed, a lost context.
  Result<double> measure(const DevicePoint& point);

 private:
  Result<cuda::Address> user(std::int64_t bytes);

  const cuda::DevicePtr device_;
  const double limit_;
  cuda::Address user_ = 0;  ///< device memory that stands for the application's buffer
  std::int64_t user_bytes_ = 0;
};

}  // namespace bestride::inline perfmodel
