// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an application does with device memory: it loads the CUDA driver as it would load the real one, makes the
// primary context of device 0 current, allocates memory of every kind, and copies to and from it.
#include <cstddef>
#include <vector>

namespace bestride::test {

enum class Kind { host, device, managed };
inline constexpr Kind every_kind[] = {Kind::host, Kind::device, Kind::managed};
const char* name(Kind kind);

/// False, and said, if there is no such driver or device. Once, before anything else here.
bool start_cuda();
/// The stand-in's control (tests/fake_cuda/control.h): which calls fail from now on; "" for none. On hardware nothing.
void fail_cuda(const char* specification);

class DeviceBuffer {
 public:
  /// Ends the program if there is no memory.
  DeviceBuffer(Kind kind, std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  /// What MPI is given.
  char* data() const { return data_; }
  void write(const std::vector<char>& bytes) const;
  std::vector<char> read() const;

 private:
  Kind kind_;
  std::size_t bytes_;
  char* data_ = nullptr;
};

}  // namespace bestride::test
