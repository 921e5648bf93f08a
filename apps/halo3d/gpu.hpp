// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gpu: the few calls of the CUDA driver a program needs that keeps its field in device memory. Loaded at run time, so that halo3d
// builds and runs where there is no CUDA. Failures after open() are exceptions that name the call.
#include <cstddef>
#include <string>

namespace halo3d {

class Gpu {
 public:
  /// Loads the driver, makes the primary context of a device current in this thread and loads the kernels. `number`: the
  /// device, modulo how many there are. Returns what is wrong, or nothing.
  static std::string open(int number);
  /// After an open() that went well.
  static Gpu& get();

  const std::string& name() const { return name_; }  ///< of the device, as the driver has it
  std::byte* allocate(std::size_t bytes);
  void free(std::byte* memory);
  void write(std::byte* target, const void* source, std::size_t bytes);
  void read(void* target, const std::byte* source, std::size_t bytes);
  /// Threads enough for `elements`, or fewer that take several; `parameter` is the kernel's only one, copied before this returns.
  void launch(const char* kernel, std::size_t elements, void* parameter);
  /// Waits for everything.
  void synchronise();

 private:
  template <class... A>
  void call(const char* name, A... arguments);
  void prepare(int number);

  void* library_ = nullptr;
  void* module_ = nullptr;
  std::string name_;
};

/// The preload is there, or the MPI library says that it takes device pointers.
bool takes_device_pointers();

}  // namespace halo3d
