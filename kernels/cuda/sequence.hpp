// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sequence: what one call enqueues on one stream, copies and one launch, kept to be enqueued again and again.
//
// A CUDA graph of it costs a capture, once, and then one driver call, however many copies there are. Whether that is faster than a
// call each depends on the driver and on their number, so it is measured (perfmodel/device_costs.hpp). Alternative that lost: one
// graph whose addresses are changed at each start. A call for each node again, which is what a graph saves; and a program that
// repeats an exchange gets the same buffers from the pools.
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/geometry.hpp"

namespace bestride::cuda {

enum class CopyKind : std::uint8_t { to_host, to_device, on_device };

struct CopyItem {
  Address from = 0, to = 0;
  std::int64_t bytes = 0;
  CopyKind kind = CopyKind::to_host;
  bool operator==(const CopyItem&) const = default;
};

/// A layout that is a box, by a copy engine.
struct BoxItem {
  Box box;
  Address user = 0, packed = 0;
  bool to_packed = false;
  bool operator==(const BoxItem&) const = default;
};

/// What is done, in this order; within one list in no order. All memory as in BatchItem and copy_box().
struct SequenceItems {
  std::vector<BoxItem> boxes;
  std::vector<CopyItem> before;
  std::vector<BatchItem> kernels;  ///< in one launch
  std::vector<CopyItem> after;
  /// Buffer ids of what the addresses are in, as far as others free it: an address given out again is another's, which a graph
  /// can't know.
  std::vector<std::uint64_t> buffers;

  /// Calls of the driver.
  int operations() const noexcept {
    return static_cast<int>(boxes.size() + before.size() + after.size()) + (kernels.empty() ? 0 : 1);
  }
  bool operator==(const SequenceItems&) const = default;
};

/// Thread-safe.
class Sequence {
 public:
  /// Errors as Batch::make's.
  static Result<std::shared_ptr<Sequence>> make(DevicePtr device, SequenceItems items, const KernelOptions& options) noexcept;
  ~Sequence();
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;

  const DevicePtr& device() const noexcept { return device_; }
  const SequenceItems& items() const noexcept { return items_; }

  /// Enqueues all of it; does not wait. The memory and the sequence must stay until it is done. After an Error some of it may be
  /// under way.
  Result<Done> enqueue(StreamHandle stream) noexcept;
  /// From now on enqueue() replays a graph, one driver call. An Error leaves the sequence as it was, for good. Tried once: later
  /// calls do nothing.
  Result<Done> keep_as_graph() noexcept;

 private:
  Sequence(DevicePtr device, SequenceItems items) noexcept : device_(std::move(device)), items_(std::move(items)) {}
  Result<Done> one_by_one(StreamHandle stream) noexcept;
  void drop_graph() noexcept;

  const DevicePtr device_;
  const SequenceItems items_;
  std::optional<Batch> batch_;
  std::mutex mutex_;  ///< of the graph, which the driver lets one thread use at a time
  bool tried_ = false;
  GraphExecHandle graph_ = nullptr;
};

}  // namespace bestride::cuda
