// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gpu: the few CUDA driver calls that a program with its field in device memory needs. The driver is loaded at run
// time, so that halo3d builds and runs without CUDA. Failures after open() throw exceptions that name the call.
#include <cstddef>
#include <string>

namespace halo3d {

class Gpu {
 public:
  /// Loads the driver, makes the primary context of a device current in this thread and loads the kernels. `number`:
  /// the device, modulo the number of devices. Returns an error text, or an empty string.
  static std::string open(int number);
  /// Only after open() succeeded.
  static Gpu& get();

  const std::string& name() const { return name_; }  ///< name of the device, as the driver reports it
  std::byte* allocate(std::size_t bytes);
  void free(std::byte* memory);
  void write(std::byte* target, const void* source, std::size_t bytes);
  void read(void* target, const std::byte* source, std::size_t bytes);
  /// Launches enough threads for `elements`, or fewer threads that each process several elements. `parameter` is the
  /// only parameter of the kernel; it is copied before this function returns.
  void launch(const char* kernel, std::size_t elements, void* parameter);
  /// Waits for all enqueued work.
  void synchronize();

 private:
  template <class... A>
  void call(const char* name, A... arguments);
  void prepare(int number);

  void* library_ = nullptr;
  void* module_ = nullptr;
  std::string name_;
};

/// True if Bestride is preloaded or the MPI library reports that it takes device pointers.
bool takes_device_pointers();

}  // namespace halo3d
