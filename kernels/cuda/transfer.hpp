// SPDX-License-Identifier: Apache-2.0
#pragma once
// PackTransfer and UnpackTransfer: a message between memory the GPU reaches and a contiguous buffer MPI can send or receive.
//
// Small state machines that never wait: start, then poll until done. A transfer owns its buffers; MPI may use data() until the
// transfer is destroyed. Destroying one that is still running is allowed: it then waits for its own GPU work, unless the device is
// dead. One thread at a time per transfer.
//
//   way          send                                              receive
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

#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/way.hpp"

namespace bestride::cuda {

enum class Progress : std::uint8_t { pending, done, failed };

struct TransferOptions {
  TransferWay way = TransferWay::staged;
  std::int64_t chunk = std::int64_t{1} << 20;  ///< bytes, pipelined; rounded up to a multiple of 256
  KernelOptions kernel = KernelOptions::from_settings();
};

/// Whether `way` can move this layout: copy_engine needs one block in at most two loops of positive strides; the others do all.
bool can_move(const Plan& plan, TransferWay way, const Device& device) noexcept;

/// From the user's buffer to data().
class PackTransfer {
 public:
  /// Starts packing all of the layout at `user`: device, managed or pinned memory, as MPI was given it (plus Memory::to_device).
  /// Error: out of memory, no kernels, device dead, way not possible: nothing is in flight then, the call can go another way.
  static Result<std::unique_ptr<PackTransfer>> start(DevicePtr device, PlanPtr plan, const void* user, const TransferOptions& options);
  ~PackTransfer();

  /// Looks, never waits. After `done` or `failed` the answer stays.
  Progress poll() noexcept;
  /// Packed bytes at the start of data() that are final: what poll() saw. size() when done.
  std::int64_t ready() const noexcept;
  /// Page-locked host memory (way `device`: device memory) of size() bytes. Null for a layout without bytes.
  void* data() const noexcept;
  std::int64_t size() const noexcept;
  /// Only after `failed`.
  const Error& error() const noexcept;

 private:
  PackTransfer();
  struct State;
  std::unique_ptr<State> state_;
};

/// From data() to the user's buffer.
class UnpackTransfer {
 public:
  /// Gets the buffer a message of up to size() bytes is received into. No GPU work yet. Errors as above.
  static Result<std::unique_ptr<UnpackTransfer>> prepare(DevicePtr device, PlanPtr plan, void* user, const TransferOptions& options);
  ~UnpackTransfer();

  void* data() const noexcept;
  std::int64_t size() const noexcept;
  /// The first `bytes` bytes of data() have arrived; may be called again with more. `last`: no more will come: a short message
  /// writes only the user's bytes it has, 0 of them none. Starts what can be started; never waits. After an error poll() says failed.
  Result<Done> deliver(std::int64_t bytes, bool last) noexcept;
  /// done: the last delivery was said and the user's buffer holds it.
  Progress poll() noexcept;
  const Error& error() const noexcept;

 private:
  UnpackTransfer();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace bestride::cuda
