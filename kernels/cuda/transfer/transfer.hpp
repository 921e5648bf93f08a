// SPDX-License-Identifier: Apache-2.0
#pragma once
// PackTransfer and UnpackTransfer: a message between memory that the GPU can access and a contiguous buffer that MPI
// can send or receive.
//
// Both are state machines that never wait: start, then poll until done. A transfer owns its buffers; MPI may use data()
// until the transfer is destroyed. A running transfer may be destroyed: the destructor then waits for the transfer's
// GPU work, unless the device is dead. One thread at a time per transfer.
//
//   method       send                                              receive
//   oneshot      kernel writes page-locked host memory             kernel reads page-locked host memory
//   staged       kernel packs into device scratch, one DMA         one DMA, kernel unpacks from device scratch
//   pipelined    the same in chunks over several streams; ready() grows chunk by chunk
//   copy_engine  2-D or 3-D DMA, no kernel                         likewise
//   device       kernel packs into device scratch, data() is       likewise: for a GPU-aware MPI
//                device memory
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "kernels/cuda/launch/batch.hpp"
#include "kernels/cuda/transfer/transfer_method.hpp"

namespace bestride::cuda {

enum class Progress : std::uint8_t { pending, done, failed };

struct TransferOptions {
  TransferMethod method = TransferMethod::staged;
  std::int64_t chunk = std::int64_t{1} << 20;  ///< bytes per chunk of `pipelined`; rounded up to a multiple of 256
  KernelOptions kernel = KernelOptions::from_settings();
};

/// True if the transfer method `method` can move this layout. copy_engine needs one block in at most two loops of
/// positive strides; the other methods move every layout.
bool can_move(const DeviceLayout& device_layout, TransferMethod method, const Device& device) noexcept;

/// From the user's buffer to data().
class PackTransfer {
 public:
  /// Starts packing the whole layout at `user`: device, managed or pinned memory, as given to MPI (plus
  /// Memory::to_device). Error: out of memory, no kernels, device dead, or method not possible. After an Error nothing
  /// is in flight, so the caller can use another method.
  static Result<std::unique_ptr<PackTransfer>> start(DevicePtr device, DeviceLayoutPtr device_layout, const void* user,
                                                     const TransferOptions& options);
  ~PackTransfer();

  /// Checks the progress, never waits. After `done` or `failed` the result does not change.
  Progress poll() noexcept;
  /// Number of packed bytes at the start of data() that are final, as of the last poll(). size() when done.
  std::int64_t ready() const noexcept;
  /// Page-locked host memory (method `device`: device memory) of size() bytes. Null for a layout without bytes.
  void* data() const noexcept;
  std::int64_t size() const noexcept;
  /// Valid only after `failed`.
  const Error& error() const noexcept;

 private:
  PackTransfer();
  struct State;
  std::unique_ptr<State> state_;
};

/// From data() to the user's buffer.
class UnpackTransfer {
 public:
  /// Allocates the buffer into which a message of up to size() bytes is received. Enqueues no GPU work. Errors as
  /// above.
  static Result<std::unique_ptr<UnpackTransfer>> prepare(DevicePtr device, DeviceLayoutPtr device_layout, void* user,
                                                         const TransferOptions& options);
  ~UnpackTransfer();

  void* data() const noexcept;
  std::int64_t size() const noexcept;
  /// The first `bytes` bytes of data() have arrived; may be called again with more. `last`: no more bytes will come; a
  /// short message writes only the user's bytes that it contains, none if `bytes` is 0. Starts what is possible; never
  /// waits. After an error, poll() returns `failed`.
  Result<Done> deliver(std::int64_t bytes, bool last) noexcept;
  /// `done`: the last delivery was announced and the user's buffer has all bytes.
  Progress poll() noexcept;
  const Error& error() const noexcept;

 private:
  UnpackTransfer();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bestride::cuda
