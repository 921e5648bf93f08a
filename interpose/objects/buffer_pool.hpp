// SPDX-License-Identifier: Apache-2.0
#pragma once
// Packing buffers, kept for reuse: page faults in a fresh megabyte cost more than packing it.
//
// Power-of-two size classes. Each is a locked free list whose links are stored in the idle buffers themselves, so that
// give_back() never allocates. The idle bytes of all classes together are bounded; anything above
// the bound is returned to the system. Alternative considered: per-thread lists, which fail because a buffer is often
// given back by another thread than the one that took it; the uncontended lock costs 20 ns, while packing only pays off
// for calls of microseconds.
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace bestride::inline interpose {

class BufferPool {
 public:
  explicit BufferPool(std::int64_t idle_limit) noexcept : idle_limit_(idle_limit) {}
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// A buffer of at least `bytes` (> 0) bytes, aligned to 64. nullptr if there is no memory. Thread-safe.
  void* take(std::int64_t bytes) noexcept;
  /// `bytes`: as passed to take(). Thread-safe; may be called from another thread than take().
  void give_back(void* buffer, std::int64_t bytes) noexcept;

  std::int64_t idle_bytes() const noexcept { return idle_.load(std::memory_order_relaxed); }

 private:
  static constexpr int smallest = 8;  // 256 B
  static constexpr int classes = 56;
  struct Free {
    Free* next;
  };
  struct alignas(64) Class {
    std::mutex mutex;
    Free* first = nullptr;
  };
  static int class_of(std::int64_t bytes) noexcept;

  const std::int64_t idle_limit_;
  std::atomic<std::int64_t> idle_{0};
  std::array<Class, classes> classes_;
};

/// One buffer taken from a pool; gives it back when destroyed. Movable, empty by default.
class BufferLease {
 public:
  BufferLease() = default;
  BufferLease(BufferPool& pool, std::int64_t bytes) noexcept : pool_(&pool), bytes_(bytes), data_(pool.take(bytes)) {}
  BufferLease(BufferLease&& other) noexcept : pool_(other.pool_), bytes_(other.bytes_), data_(other.data_) {
    other.data_ = nullptr;
  }
  BufferLease& operator=(BufferLease&& other) noexcept {
    if (this != &other) {
      release();
      pool_ = other.pool_, bytes_ = other.bytes_, data_ = other.data_;
      other.data_ = nullptr;
    }
    return *this;
  }
  ~BufferLease() { release(); }
  void release() noexcept {
    if (data_) pool_->give_back(data_, bytes_);
    data_ = nullptr;
  }
  explicit operator bool() const noexcept { return data_ != nullptr; }
  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }

 private:
  BufferPool* pool_ = nullptr;
  std::int64_t bytes_ = 0;
  void* data_ = nullptr;
};

}  // namespace bestride::inline interpose
