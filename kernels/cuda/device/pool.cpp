// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device/pool.hpp"

#include <algorithm>
#include <bit>

#include "kernels/cuda/device/device.hpp"

namespace bestride::cuda {
namespace {

constexpr std::int64_t smallest = std::int64_t{64} << 10;

/// Rounds up to one of four sizes per power of two: at most a fifth is wasted, and buffers can be reused for similar
/// sizes.
std::int64_t rounded(std::int64_t size) {
  if (size <= smallest) return smallest;
  const std::int64_t step = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size))) / 4;
  return (size + step - 1) / step * step;
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : pool_(std::move(other.pool_)), address_(std::exchange(other.address_, 0)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(address_, other.address_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (address_ != 0) pool_->give_back(address_, size_);
}

Code Pool::allocate(const Device& device, std::int64_t size, Address* address) const noexcept {
  if (kind_ == Kind::scratch) return device.driver().cuMemAlloc(address, static_cast<std::size_t>(size));
  void* host = nullptr;
  const Code code = device.driver().cuMemHostAlloc(&host, static_cast<std::size_t>(size), host_alloc_portable);
  *address = reinterpret_cast<std::uintptr_t>(host);
  return code;
}

void Pool::free(const Device& device, Address address) const noexcept {
  if (kind_ == Kind::scratch)
    device.driver().cuMemFree(address);
  else
    device.driver().cuMemFreeHost(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)));
}

Result<Buffer> Pool::take(Device& device, std::int64_t size) noexcept try {
  const std::int64_t wanted = rounded(size);
  Buffer buffer;
  std::vector<Address> surplus;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) return device.gone();
    if (wanted > use_limit_ - used_bytes_)
      return Error{"GPU messages in flight need more than BESTRIDE_GPU_LIMIT (" + std::to_string(use_limit_) +
                   " bytes); raise it"};
    used_bytes_ += wanted;
    const auto found = idle_.lower_bound({wanted, 0});
    // A much larger buffer is not used, because another request may need it.
    if (found != idle_.end() && found->first <= 2 * wanted) {
      buffer.address_ = found->second;
      used_bytes_ += found->first - wanted;
      buffer.size_ = found->first;
      idle_bytes_ -= found->first;
      idle_.erase(found);
      buffer.pool_ = shared_from_this();
      return buffer;
    }
    surplus.swap(surplus_);
  }
  Address address = 0;
  Code code = code::unknown;
  {
    const Current current(device);
    if (current) {
      for (const Address old : surplus) free(device, old);
      code = allocate(device, wanted, &address);
      if (code == code::out_of_memory) {
        trim(device);
        code = allocate(device, wanted, &address);
      }
    } else {
      code = code::context_is_destroyed;
    }
  }
  if (code != code::success) {
    {
      const std::lock_guard lock(mutex_);
      used_bytes_ -= wanted;
    }
    return device.check(kind_ == Kind::scratch ? "cuMemAlloc" : "cuMemHostAlloc", code).error();
  }
  buffer.address_ = address;
  buffer.size_ = wanted;
  buffer.pool_ = shared_from_this();
  return buffer;
} catch (...) {
  return Error{"out of memory"};
}

void Pool::trim(Device& device) noexcept {
  std::set<std::pair<std::int64_t, Address>> idle;
  std::vector<Address> surplus;
  {
    const std::lock_guard lock(mutex_);
    idle.swap(idle_);
    surplus.swap(surplus_);
    idle_bytes_ = 0;
    if (closed_) return;
  }
  if (!device.alive()) return;
  for (const auto& [size, address] : idle) free(device, address);
  for (const Address address : surplus) free(device, address);
}

void Pool::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  idle_.clear();
  surplus_.clear();
  idle_bytes_ = 0;
}

void Pool::give_back(Address address, std::int64_t size) noexcept try {
  const std::lock_guard lock(mutex_);
  used_bytes_ -= size;
  if (closed_) return;
  if (idle_bytes_ + size > idle_limit_) {
    surplus_.push_back(address);  // freeing may wait for the GPU, so it is not done here
    return;
  }
  idle_.emplace(size, address);
  idle_bytes_ += size;
} catch (...) {
  // No memory to store the buffer: it is abandoned to the context.
}

std::int64_t Pool::idle() const noexcept {
  const std::lock_guard lock(mutex_);
  return idle_bytes_;
}

std::int64_t Pool::in_use() const noexcept {
  const std::lock_guard lock(mutex_);
  return used_bytes_;
}

}  // namespace bestride::cuda
