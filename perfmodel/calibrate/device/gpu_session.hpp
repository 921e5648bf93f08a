// SPDX-License-Identifier: Apache-2.0
#pragma once
// GpuSession: lets a process use a GPU on its own. The preload library never initializes the driver and never creates a
// context; a program that measures or lists GPUs does both through the driver's interface.
#include <string>
#include <vector>

#include "base/result.hpp"
#include "kernels/cuda/device/device.hpp"

namespace bestride::inline perfmodel {

/// The GPUs of this host, for display.
struct GpuSummary {
  int version = 0;                   ///< of the driver, for example 13000; 0: there is no driver, or it can't be used
  bool stand_in = false;             ///< a test double of this repository without hardware
  std::string name;                  ///< of device 0, as returned by gpu_name(); "" if there is none
  std::vector<std::string> devices;  ///< "NVIDIA H100 80GB HBM3, capability 9.0"
  std::string problem;               ///< why there is no driver or no device; "" otherwise
  bool broken = false;               ///< the driver is present but can't be used (as opposed to: there is no GPU)
};
/// Loads and initializes the driver, so call it only in a process that may crash. With BESTRIDE_GPU=off it does not
/// load the driver, and `problem` states this.
GpuSummary look_at_gpus();

/// The primary context of a device, current in the calling thread until the session ends. At most one session in a
/// process.
class GpuSession {
 public:
  /// Opens device `rank` modulo the number of devices. Error, one line: no driver, no device, no context, or the device
  /// can't run this build's kernels.
  static Result<GpuSession> open(int rank = 0);
  GpuSession(GpuSession&& other) noexcept;
  GpuSession& operator=(GpuSession&&) = delete;
  ~GpuSession();

  const cuda::DevicePtr& device() const noexcept { return device_; }
  const std::string& name() const noexcept { return name_; }  ///< as returned by gpu_name()
  bool stand_in() const noexcept { return stand_in_; }

 private:
  GpuSession() = default;
  const cuda::Driver* driver_ = nullptr;
  cuda::DeviceOrdinal ordinal_ = 0;
  bool current_ = false;
  cuda::DevicePtr device_;
  std::string name_;
  bool stand_in_ = false;
};

}  // namespace bestride::inline perfmodel
