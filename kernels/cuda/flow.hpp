// SPDX-License-Identifier: Apache-2.0
#pragma once
// Flow: the GPU's part of one transfer, in either direction: buffers, what is enqueued, what has finished.
//
// Work is enqueued as bytes become available (packing: all at once; unpacking: as they arrive), in one go or in chunks over
// several streams. A chunk's place in scratch memory belongs to its stream, so a place is used again only behind its last use.
#include <array>
#include <deque>
#include <optional>

#include "kernels/cuda/geometry.hpp"
#include "kernels/cuda/transfer.hpp"

namespace bestride::cuda {

class Flow {
 public:
  Flow(DevicePtr device, PlanPtr plan, Address user, Direction direction, const TransferOptions& options);
  /// Waits for what is enqueued, unless the device is dead.
  ~Flow();
  Flow(const Flow&) = delete;
  Flow& operator=(const Flow&) = delete;

  /// Gets the buffers. No GPU work. `host`: page-locked memory of size() bytes to use instead of an own buffer, which must stay until
  /// this is destroyed; not for way `device`.
  Result<Done> prepare(void* host = nullptr) noexcept;
  /// The first `bytes` packed bytes may be moved; `last`: there will be no more. Never less than before.
  Result<Done> allow(std::int64_t bytes, bool last) noexcept;
  /// Looks what has finished, enqueues what can be. After failed the answer stays.
  Progress poll() noexcept;

  std::int64_t finished() const noexcept { return finished_; }  ///< packed bytes at the start that are done
  void* data() const noexcept { return way_ == TransferWay::device ? scratch_.data() : reinterpret_cast<void*>(host_address_); }
  std::int64_t size() const noexcept { return plan_->size(); }
  const Error& error() const noexcept { return error_; }

 private:
  struct Chunk {
    Event event;
    std::int64_t end;
    std::optional<Batch> batch;  ///< holds what the kernel reads
  };
  Result<Done> pump() noexcept;
  Result<Done> issue(std::int64_t first, std::int64_t last) noexcept;
  Result<Done> enqueue(std::int64_t first, std::int64_t last, int slot, std::optional<Batch>& batch) noexcept;
  Result<Done> kernel(std::int64_t first, std::int64_t last, Address packed, StreamHandle stream, std::optional<Batch>& batch) noexcept;
  Result<Done> copy(Address from, Address to, std::int64_t bytes, bool to_host, bool on_device, StreamHandle stream) noexcept;
  void wait() noexcept;
  bool fail(const Result<Done>& result) noexcept;

  static constexpr int slots = Device::stream_count;
  static constexpr std::size_t most_in_flight = 4 * slots;  ///< chunks: the driver's queue must never be what we wait for

  const DevicePtr device_;
  const PlanPtr plan_;
  const Address user_;
  const Direction direction_;
  const TransferWay way_;
  const KernelOptions kernel_options_;
  const std::optional<Box> box_;
  std::int64_t chunk_;
  std::array<StreamHandle, slots> streams_{};
  std::array<bool, slots> used_{};
  Buffer host_;               ///< if it is our own
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
