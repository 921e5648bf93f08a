// SPDX-License-Identifier: Apache-2.0
#pragma once
// Flow: the GPU part of one transfer in either direction: its buffers, the enqueued work, and what has finished.
//
// Work is enqueued as bytes become available (packing: all at once; unpacking: as they arrive), in one piece or in
// chunks over several streams. Each region of scratch memory belongs to one stream, so stream order ensures that a
// region is reused only after its last use.
#include <array>
#include <deque>
#include <optional>

#include "kernels/cuda/device/geometry.hpp"
#include "kernels/cuda/transfer/transfer.hpp"

namespace bestride::cuda {

class Flow {
 public:
  Flow(DevicePtr device, DeviceLayoutPtr device_layout, Address user, Direction direction,
       const TransferOptions& options);
  /// Waits for the enqueued work, unless the device is dead.
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  /// Allocates the buffers. Enqueues no GPU work. `host`: page-locked memory of size() bytes to use instead of an own
  /// buffer; it must outlive this object. Not for the method `device`.
  Result<Done> prepare(void* host = nullptr) noexcept;
  /// Allows moving the first `bytes` packed bytes; `last`: there will be no more. `bytes` never decreases.
  Result<Done> allow(std::int64_t bytes, bool last) noexcept;
  /// Checks what has finished and enqueues what is possible. After `failed` the result does not change.
  Progress poll() noexcept;

  std::int64_t finished() const noexcept { return finished_; }  ///< number of packed bytes at the start that are done
  void* data() const noexcept {
    return method_ == TransferMethod::device ? scratch_.data() : reinterpret_cast<void*>(host_address_);
  }
  std::int64_t size() const noexcept { return device_layout_->size(); }
  const Error& error() const noexcept { return error_; }

 private:
  struct Chunk {
    Event event;
    std::int64_t end;
    std::optional<Batch> batch;  ///< owns what the kernel reads
  };
  Result<Done> pump() noexcept;
  Result<Done> issue(std::int64_t first, std::int64_t last) noexcept;
  Result<Done> enqueue(std::int64_t first, std::int64_t last, int slot, std::optional<Batch>& batch) noexcept;
  Result<Done> kernel(std::int64_t first, std::int64_t last, Address packed, StreamHandle stream,
                      std::optional<Batch>& batch) noexcept;
  Result<Done> copy(Address from, Address to, std::int64_t bytes, bool to_host, bool on_device,
                    StreamHandle stream) noexcept;
  void wait() noexcept;
  bool fail(const Result<Done>& result) noexcept;

  static constexpr int slots = Device::stream_count;
  static constexpr std::size_t max_in_flight =
      4 * slots;  ///< chunks; the driver's queue must never fill up, because enqueueing would then block

  const DevicePtr device_;
  const DeviceLayoutPtr device_layout_;
  const Address user_;
  const Direction direction_;
  const TransferMethod method_;
  const KernelOptions kernel_options_;
  const std::optional<Box> box_;
  std::int64_t chunk_;
  std::array<StreamHandle, slots> streams_{};
  std::array<bool, slots> used_{};
  Buffer host_;  ///< empty if the caller provides the memory
  Address host_address_ = 0;
  Buffer scratch_;
  std::deque<Chunk> in_flight_;
  std::int64_t allowed_ = 0;
  std::int64_t issued_ = 0;
  std::int64_t finished_ = 0;
  int chunks_issued_ = 0;
  bool last_ = false;
  bool failed_ = false;
  Error error_;
};

}  // namespace bestride::cuda
