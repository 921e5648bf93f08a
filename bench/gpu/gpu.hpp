// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gpu: the parts of the CUDA driver API that the benchmarks need: a device, memory, launches, clocks. The driver is
// loaded at run time, so that the benchmarks build without it. Every failure is an exception that names the call.
#include <functional>
#include <stdexcept>
#include <string>

#include "kernels/cuda/driver/driver_abi.hpp"

namespace gpu {

using bestride::cuda::Address;
using bestride::cuda::Code;
using bestride::cuda::EventHandle;
using bestride::cuda::FunctionHandle;
using bestride::cuda::StreamHandle;

class Failed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One device. Its primary context is current in the thread that created this object. One thread at a time.
class Gpu {
 public:
  /// Loads libcuda.so.1, or the library that BESTRIDE_CUDA_DRIVER names. Throws Failed if there is no driver or device.
  explicit Gpu(int ordinal);

  /// The stand-in driver is loaded: its results are valid, its times are not.
  bool stand_in() const { return stand_in_; }
  const std::string& name() const { return name_; }
  int driver_version() const { return driver_version_; }
  int capability() const { return capability_; }
  int multiprocessors() const { return multiprocessors_; }
  /// Free bytes of device memory.
  std::size_t available() const;

  /// Allocates device memory, which is never freed.
  Address allocate(std::size_t bytes) const;
  /// Allocates page-locked host memory, which is never freed.
  void* allocate_pinned(std::size_t bytes) const;
  void write(Address target, const void* source, std::size_t bytes) const;
  void read(void* target, Address source, std::size_t bytes) const;
  void fill(Address target, unsigned char value, std::size_t bytes) const;

  /// A non-blocking stream.
  StreamHandle stream() const { return stream_; }
  /// Enqueues a copy on stream(). `source` and `target`: any memory that the device can access.
  void copy(Address target, Address source, std::size_t bytes) const;
  FunctionHandle function(const void* image, const char* name);
  /// Launches grid * 256 threads. `parameter`: the only parameter of the kernel, copied before this returns.
  void launch(FunctionHandle function, unsigned grid, void* parameter) const;
  void synchronize() const;

  /// Seconds that the work of `enqueue` takes on stream(), by the device's clock. Waits for the work.
  double device_seconds(const std::function<void()>& enqueue) const;
  /// Seconds of `work` by the host's clock.
  static double host_seconds(const std::function<void()>& work);

 private:
  template <class... A>
  void call(const char* name, A... arguments) const;

  void* library_ = nullptr;
  void* module_ = nullptr;
  bool stand_in_ = false;
  std::string name_;
  int driver_version_ = 0;
  int capability_ = 0;
  int multiprocessors_ = 1;
  StreamHandle stream_ = nullptr;
  EventHandle before_ = nullptr, after_ = nullptr;
};

}  // namespace gpu
