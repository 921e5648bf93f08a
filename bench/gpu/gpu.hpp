// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gpu: what a program written to the CUDA driver API needs, and no more: a device, memory, launches, clocks. The driver
// is loaded at run time, so the benchmarks build where there is none. Every failure is an exception that names the
// call.
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

/// One device, its primary context current in the thread that made it. One thread at a time.
class Gpu {
 public:
  /// Loads libcuda.so.1, or the library BESTRIDE_CUDA_DRIVER names. Failed: no driver, no such device.
  explicit Gpu(int ordinal);

  /// A test double of the driver is loaded: what it computes counts, what it takes does not.
  bool stand_in() const { return stand_in_; }
  const std::string& name() const { return name_; }
  int driver_version() const { return driver_version_; }
  int capability() const { return capability_; }
  int multiprocessors() const { return multiprocessors_; }
  /// Bytes of device memory nobody has.
  std::size_t available() const;

  /// Device memory until the process ends.
  Address allocate(std::size_t bytes) const;
  /// Page-locked host memory until the process ends.
  void* allocate_pinned(std::size_t bytes) const;
  void write(Address target, const void* source, std::size_t bytes) const;
  void read(void* target, Address source, std::size_t bytes) const;
  void fill(Address target, unsigned char value, std::size_t bytes) const;

  /// A stream of our own, which waits for no other.
  StreamHandle stream() const { return stream_; }
  /// Enqueued on stream(). `source` and `target`: any memory the device reaches.
  void copy(Address target, Address source, std::size_t bytes) const;
  FunctionHandle function(const void* image, const char* name);
  /// `parameter`: the kernel's only one, copied before this returns. Threads: grid * 256.
  void launch(FunctionHandle function, unsigned grid, void* parameter) const;
  void synchronise() const;

  /// Seconds between what was before and after `enqueue` on stream(), by the device's clock. Waits for it.
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
