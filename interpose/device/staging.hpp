// SPDX-License-Identifier: Apache-2.0
#pragma once
// Staging: the device memory of one message, and the contiguous buffer that MPI is given in its place.
//
// The buffer is page-locked host memory, which kernels and copy engines can access. If none is left, it is ordinary
// host memory, filled by copies block by block. For a GPU-aware MPI it is device memory.
#include <mpi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "interpose/device/buffer_location.hpp"
#include "interpose/device/transfer_choice.hpp"
#include "interpose/objects/buffer_pool.hpp"
#include "kernels/cuda/device/device_layout.hpp"
#include "kernels/cuda/launch/batch.hpp"

namespace bestride::inline interpose {

/// Contiguous bytes that MPI is given. May hold several messages.
class StagingBuffer {
 public:
  /// Page-locked memory (or, if `aware`, device memory) of `device`; ordinary memory if the device has none left or
  /// `device` is null (no single device can access the user's memory as a whole). nullptr: no memory at all.
  static std::shared_ptr<StagingBuffer> make(const cuda::DevicePtr& device, std::int64_t bytes, bool aware) noexcept;

  /// Wraps memory of the application that kernels can access. Does not own it.
  static std::shared_ptr<StagingBuffer> of(std::byte* theirs, bool on_device) noexcept;

  std::byte* data() const noexcept {
    return external_ ? external_ : buffer_ ? static_cast<std::byte*>(buffer_.data()) : lease_.data();
  }
  /// Kernels can access it.
  bool pinned() const noexcept { return buffer_ || external_; }
  /// MPI is given device memory.
  bool on_device() const noexcept { return on_device_; }

 private:
  cuda::Buffer buffer_;
  BufferLease lease_;
  std::byte* external_ = nullptr;
  bool on_device_ = false;
};

/// Shared by the endpoint of the call and the transfer in flight. Not thread-safe, except for failed().
class Staging {
 public:
  /// `location`: must have needs_device and a known layout. `staging_buffer` and `at`: the buffer for the packed bytes
  /// and the byte offset in it; null: allocates one. `comm`: the communicator whose error handler gets the errors.
  /// Error: no device can access the memory, or out of memory.
  static Result<std::shared_ptr<Staging>> make(const BufferLocation& location, void* user, MPI_Comm comm,
                                               TransferPurpose purpose,
                                               std::shared_ptr<StagingBuffer> staging_buffer = nullptr,
                                               std::int64_t at = 0) noexcept;
  /// Makes a staging in host memory of its own, also for a GPU-aware MPI library. Accepts memory that no single device
  /// can access, too: it is moved block by block. Error: out of memory.
  static Result<std::shared_ptr<Staging>> make_on_host(const BufferLocation& location, void* user, MPI_Comm comm,
                                                       CallKind kind) noexcept;

  std::byte* packed() const noexcept { return packed_; }
  std::int64_t size() const noexcept { return location_.layout->size(); }
  const Layout& layout() const noexcept { return *location_.layout; }
  const LayoutPtr& layout_pointer() const noexcept { return location_.layout; }
  const cuda::Memory& memory() const noexcept { return location_.memory; }
  void* user() const noexcept { return user_; }
  /// The user's address as kernels see it.
  cuda::Address user_address() const noexcept {
    return reinterpret_cast<cuda::Address>(user_) + static_cast<cuda::Address>(location_.memory.to_device);
  }
  const cuda::DevicePtr& device() const noexcept { return device_; }
  const cuda::DeviceLayoutPtr& device_layout() const noexcept { return device_layout_; }
  const StagingBuffer& staging_buffer() const noexcept { return *staging_buffer_; }
  /// The transfer method chosen at construction; meaningful only if fast().
  const TransferChoice& choice() const noexcept { return choice_; }
  /// The name of the transfer method in the report: "staged", ... or "blocks".
  const char* method_name() const noexcept { return fast() ? cuda::name(choice_.method) : "blocks"; }
  MPI_Comm comm() const noexcept { return comm_; }
  /// Kernels and copy engines can move the message; otherwise it is moved block by block.
  bool fast() const noexcept { return device_layout_ && staging_buffer_->pinned() && device_->alive(); }

  /// The last transfer failed.
  bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  void set_failed(bool failed) noexcept { failed_.store(failed, std::memory_order_release); }

  /// Public only because make_shared needs it; call make() instead.
  Staging(const BufferLocation& location, void* user, MPI_Comm comm) noexcept
      : location_(location), user_(user), comm_(comm) {}

 private:
  BufferLocation location_;
  void* user_;
  MPI_Comm comm_;
  cuda::DevicePtr device_;
  cuda::DeviceLayoutPtr device_layout_;
  std::shared_ptr<StagingBuffer> staging_buffer_;
  TransferChoice choice_;
  std::byte* packed_ = nullptr;
  std::atomic<bool> failed_{false};
};
using StagingPtr = std::shared_ptr<Staging>;

/// Moves packed bytes [first, last) block by block with plain copies. Used if kernels or page-locked memory are not
/// available, and for memory of mixed kinds. Waits. Does not touch gaps, in either direction.
Result<cuda::Done> move_blockwise(const Staging& staging, Direction direction, std::int64_t first,
                                  std::int64_t last) noexcept;

}  // namespace bestride::inline interpose
