// SPDX-License-Identifier: Apache-2.0
#pragma once
// CUDA device memory for tests that are MPI programs. It is allocated and copied through the driver as in an
// application, with the stand-in driver or a real one.
#include <cstddef>
#include <string_view>

namespace bestride::test {

enum class MemoryPlace { host, pinned, managed, device };
inline constexpr MemoryPlace every_memory_place[] = {MemoryPlace::host, MemoryPlace::pinned, MemoryPlace::managed,
                                                     MemoryPlace::device};

/// From now on driver errors do not end the test, for tests that make the device unusable. A failed read leaves the
/// target unchanged.
void tolerate_driver_errors();

/// The first use loads and initializes the driver. Without a driver the program ends with a message.
class DeviceMemory {
 public:
  /// `place`: not host. Allocates in the primary context of device 0, which becomes current in this thread.
  DeviceMemory(MemoryPlace place, std::size_t size);
  ~DeviceMemory() { release(); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  /// Copies the whole memory, and waits.
  void write(const void* from) const;
  void read(void* to) const;
  void release();

 private:
  MemoryPlace place_;
  std::size_t size_;
  std::byte* data_ = nullptr;
};

/// The kind of memory for the next buffer of a test, from the variable TEST_MEMORY: host (default), pinned, managed,
/// device, or turns, which alternates between all kinds.
MemoryPlace next_memory_place();
/// Overrides TEST_MEMORY from now on.
void set_memory_place(MemoryPlace place);

/// An entry of the loaded driver, including the controls of the stand-in (tests/fake_cuda/control.h); nullptr if there
/// is none.
void* driver_entry(const char* name);
template <class F>
F driver_entry_as(const char* name) {
  return reinterpret_cast<F>(driver_entry(name));
}

}  // namespace bestride::test
