// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pool: buffers of one kind (page-locked host, or device scratch) of one context, kept for reuse.
//
// Both kinds are slow to get, and freeing may wait for all work of the
// context, so idle buffers are kept up to BESTRIDE_POOL_LIMIT bytes a pool; what is handed out is limited by
// BESTRIDE_GPU_LIMIT. Beyond it, or when the driver has no memory left (after the idle ones were freed), the answer is an Error.
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "kernels/cuda/driver_abi.hpp"

namespace bestride::cuda {

class Device;
class Pool;

/// A buffer on loan; goes back to its pool at the end of its life. Whoever holds it must outlast the work that uses it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();
  void* data() const noexcept { return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address_)); }
  Address address() const noexcept { return address_; }
  std::int64_t size() const noexcept { return size_; }
  explicit operator bool() const noexcept { return address_ != 0; }

 private:
  friend class Pool;
  std::shared_ptr<Pool> pool_;
  Address address_ = 0;
  std::int64_t size_ = 0;
};

/// Thread-safe. Outlives its device as long as a buffer is out; then the buffer is left to the context.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  enum class Kind : std::uint8_t { pinned, scratch };
  /// `idle_limit`, `use_limit`: bytes.
  Pool(Kind kind, std::int64_t idle_limit, std::int64_t use_limit) : kind_(kind), idle_limit_(idle_limit), use_limit_(use_limit) {}

  /// `size` > 0. The device's context is made current for an allocation.
  Result<Buffer> take(Device& device, std::int64_t size) noexcept;
  /// Frees the idle ones. The context must be current; on a dead device they are forgotten.
  void trim(Device& device) noexcept;
  /// The device goes: nothing is freed from now on, buffers that come back are forgotten.
  void close() noexcept;

  std::int64_t idle() const noexcept;    ///< bytes kept
  std::int64_t in_use() const noexcept;  ///< bytes handed out

 private:
  friend class Buffer;
  void give_back(Address address, std::int64_t size) noexcept;
  Code allocate(const Device& device, std::int64_t size, Address* address) const noexcept;
  void free(const Device& device, Address address) const noexcept;

  const Kind kind_;
  const std::int64_t idle_limit_;
  const std::int64_t use_limit_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  std::int64_t idle_bytes_ = 0;
  std::int64_t used_bytes_ = 0;
  /// By size and address: what is asked for again in the same order gets the same addresses, however it came back.
  std::set<std::pair<std::int64_t, Address>> idle_;
  std::vector<Address> surplus_;                  ///< came back beyond the limit: freed at the next take
};

}  // namespace bestride::cuda
