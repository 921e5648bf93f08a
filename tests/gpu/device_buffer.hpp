// SPDX-License-Identifier: Apache-2.0
#pragma once
// Uses device memory as an application does: loads the CUDA driver, makes the primary context of device 0 current,
// allocates memory of every kind, and copies to and from it.
#include <cstddef>
#include <vector>

namespace bestride::test {

enum class Kind { host, device, managed };
inline constexpr Kind every_kind[] = {Kind::host, Kind::device, Kind::managed};
const char* name(Kind kind);

/// Must be called once before all other functions here. Prints a message and returns false if there is no driver or
/// device.
bool start_cuda();
/// Which driver calls fail from now on (tests/fake_cuda/control.h), "" for none. No effect on a real driver.
void fail_cuda(const char* specification);

class DeviceBuffer {
 public:
  /// Ends the program if the allocation fails.
  DeviceBuffer(Kind kind, std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  /// The address that MPI gets.
  char* data() const { return data_; }
  void write(const std::vector<char>& bytes) const;
  std::vector<char> read() const;

 private:
  Kind kind_;
  std::size_t bytes_;
  char* data_ = nullptr;
};

}  // namespace bestride::test
