// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pool: buffers of one kind (page-locked host memory or device scratch memory) of one context, kept for reuse.
//
// Allocating either kind is slow, and freeing may wait for all work of the context. Idle buffers are therefore kept, up
// to a limit per pool; the bytes in use are limited by BESTRIDE_GPU_LIMIT. Beyond that limit, or if
// the driver has no memory left after the idle buffers were freed, the result is an Error.
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "kernels/cuda/driver/driver_abi.hpp"

namespace bestride::cuda {

class Device;
class Pool;

/// A buffer borrowed from a pool; returned on destruction. Its holder must keep it until the work that uses it is done.
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

/// Thread-safe. Outlives its device while a buffer is in use; such a buffer is then abandoned to the context.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  enum class Kind : std::uint8_t { pinned, scratch };
  /// `idle_limit`, `use_limit`: bytes.
  Pool(Kind kind, std::int64_t idle_limit, std::int64_t use_limit)
      : kind_(kind), idle_limit_(idle_limit), use_limit_(use_limit) {}

  /// `size` > 0. The device's context is made current for an allocation.
  Result<Buffer> take(Device& device, std::int64_t size) noexcept;
  /// Frees the idle buffers. The context must be current; on a dead device the buffers are abandoned.
  void trim(Device& device) noexcept;
  /// Called when the device is destroyed: nothing is freed from then on, and returned buffers are abandoned.
  void close() noexcept;

  std::int64_t idle() const noexcept;    ///< bytes kept for reuse
  std::int64_t in_use() const noexcept;  ///< bytes in use

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
  /// Ordered by size and address: the same sequence of requests gets the same addresses, whatever the order of the
  /// returns.
  std::set<std::pair<std::int64_t, Address>> idle_;
  std::vector<Address> surplus_;  ///< returned beyond the limit; freed by the next take
};

}  // namespace bestride::cuda
