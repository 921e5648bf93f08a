// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sequence: the work that one call enqueues on one stream (copies and one launch), kept so that it can be enqueued
// repeatedly.
//
// A CUDA graph of the sequence costs one capture and then one driver call per replay, whatever the number of copies.
// Whether this is faster than separate calls depends on the driver and on their number, so it is measured
// (perfmodel/device/costs.hpp). Alternative considered: one graph whose addresses are updated at each start. This needs
// one call per node, which is the cost that a graph avoids, and a program that repeats an exchange gets the same
// buffers from the pools anyway.
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/cuda/device/geometry.hpp"
#include "kernels/cuda/launch/batch.hpp"

namespace bestride::cuda {

enum class CopyKind : std::uint8_t { to_host, to_device, on_device };

struct CopyItem {
  Address from = 0, to = 0;
  std::int64_t bytes = 0;
  CopyKind kind = CopyKind::to_host;
  bool operator==(const CopyItem&) const = default;
};

/// A layout that is a box, moved by a copy engine.
struct BoxItem {
  Box box;
  Address user = 0, packed = 0;
  bool to_packed = false;
  bool operator==(const BoxItem&) const = default;
};

/// The work, in the order of the members; within one list the order is unspecified. Memory requirements as in BatchItem
/// and copy_box().
struct SequenceItems {
  std::vector<BoxItem> boxes;
  std::vector<CopyItem> before;
  std::vector<BatchItem> kernels;  ///< all in one launch
  std::vector<CopyItem> after;
  /// Buffer ids of the memory behind the addresses, for memory that other code can free: a reused address belongs to
  /// another buffer, which a graph cannot detect.
  std::vector<std::uint64_t> buffers;

  /// Number of driver calls.
  int operations() const noexcept {
    return static_cast<int>(boxes.size() + before.size() + after.size()) + (kernels.empty() ? 0 : 1);
  }
  bool operator==(const SequenceItems&) const = default;
};

/// Thread-safe.
class Sequence {
 public:
  /// Errors as Batch::make.
  static Result<std::shared_ptr<Sequence>> make(DevicePtr device, SequenceItems items,
                                                const KernelOptions& options) noexcept;
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  const DevicePtr& device() const noexcept { return device_; }
  const SequenceItems& items() const noexcept { return items_; }

  /// Enqueues all work; does not wait. The memory and the sequence must stay valid until it is done. After an Error
  /// some of the work may be in flight.
  Result<Done> enqueue(StreamHandle stream) noexcept;
  /// Makes later enqueue() calls replay a graph by one driver call. After an Error the sequence stays permanently
  /// without a graph. Only the first call has an effect.
  Result<Done> keep_as_graph() noexcept;

 private:
  Sequence(DevicePtr device, SequenceItems items) noexcept : device_(std::move(device)), items_(std::move(items)) {}
  Result<Done> one_by_one(StreamHandle stream) noexcept;
  void drop_graph() noexcept;

  const DevicePtr device_;
  const SequenceItems items_;
  std::optional<Batch> batch_;
  std::mutex mutex_;  ///< guards the graph, which the driver allows only one thread to use at a time
  bool tried_ = false;
  GraphExecHandle graph_ = nullptr;
};

}  // namespace bestride::cuda
