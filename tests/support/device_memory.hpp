// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA device memory for tests that are MPI programs: allocated and copied through the driver as an application does
// it, with the stand-in driver or a real one.
#include <cstddef>
#include <string_view>

namespace bestride::test {

enum class MemoryPlace { host, pinned, managed, device };
inline constexpr MemoryPlace every_memory_place[] = {MemoryPlace::host, MemoryPlace::pinned, MemoryPlace::managed,
                                                     MemoryPlace::device};

/// From now on an error of the driver is no end of the test: for tests that spoil the device. What is read then is
/// unchanged.
void tolerate_driver_errors();

/// The driver is loaded and initialised at the first use of any of this; without one the program ends with a message.
class DeviceMemory {
 public:
  /// `place`: not host. In the primary context of device 0, which is current in this thread from then on.
  DeviceMemory(MemoryPlace place, std::size_t size);
  ~DeviceMemory() { release(); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// All of it; waits.
  void write(const void* from) const;
  void read(void* to) const;
  void release();

 private:
  MemoryPlace place_;
  std::size_t size_;
  std::byte* data_ = nullptr;
};

/// What the variable TEST_MEMORY says of the next buffer of a test: host, pinned, managed, device; or turns, one of all
/// in turn. host if it is not set.
MemoryPlace next_memory_place();
/// From now on that is the answer, whatever the variable says.
void set_memory_place(MemoryPlace place);

/// An entry of the driver that was loaded, nullptr if it has none: the stand-in's controls (tests/fake_cuda/control.h)
/// among them.
void* driver_entry(const char* name);
template <class F>
F driver_entry_as(const char* name) {
  return reinterpret_cast<F>(driver_entry(name));
}

}  // namespace bestride::test
