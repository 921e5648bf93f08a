// SPDX-License-Identifier: Apache-2.0
#pragma once
// GpuSession: a process that uses a GPU by itself. The library never initialises the driver and never makes a context; who measures,
// or only looks, has to, through the driver's own interface.
#include <string>
#include <vector>

#include "base/result.hpp"
#include "kernels/cuda/device.hpp"

namespace bestride {

/// What there is, for a person.
struct GpuSummary {
  int version = 0;                   ///< of the driver, e.g. 13000; 0: there is none, or it can't be used
  bool stand_in = false;             ///< a test double of this repository, no hardware behind it
  std::string name;                  ///< of device 0, as gpu_name() has it; "" if there is none
  std::vector<std::string> devices;  ///< "NVIDIA H100 80GB HBM3, capability 9.0"
  std::string trouble;               ///< why there is no driver or no device; "" otherwise
  bool broken = false;               ///< the trouble is not that there is no GPU, but that a driver that is there can't be used
};
/// Loads and initialises the driver, so it belongs into a process that may crash. BESTRIDE_GPU=off: looks at nothing, says so.
GpuSummary look_at_gpus();

/// A device's primary context, current in the calling thread until the end of the session. One at a time a process.
class GpuSession {
 public:
  /// Error: no driver, no device, no context, or this build's kernels don't run there; one line.
  /// Device `rank`, modulo how many there are.
  static Result<GpuSession> open(int rank = 0);
  GpuSession(GpuSession&& other) noexcept;
  GpuSession& operator=(GpuSession&&) = delete;
  ~GpuSession();

  const cuda::DevicePtr& device() const noexcept { return device_; }
  const std::string& name() const noexcept { return name_; }  ///< as gpu_name() has it
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

}  // namespace bestride
