// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bench: device memory for the moves, and the timing method: variants take turns, medians over rounds, and alternating
// places in memory, so that the data are not in the cache.
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/gpu/gpu.hpp"
#include "bench/gpu/results.hpp"
#include "kernels/cuda/device/device.hpp"
#include "kernels/cuda/launch/batch.hpp"

namespace gpu {

using bestride::Direction;
using bestride::LayoutPtr;
using bestride::cuda::Batch;
using bestride::cuda::BatchItem;
using bestride::cuda::DeviceLayoutPtr;
using bestride::cuda::DevicePtr;
using bestride::cuda::KernelOptions;

struct Scale {
  std::vector<std::int64_t> sizes;  ///< packed bytes of the cases that are measured against the limit
  std::int64_t large = 0;           ///< packed bytes of other cases, if they fit
  std::int64_t edge = 0;            ///< points along an edge of the halo's cube
  double seconds = 0.05;            ///< time to measure one case
};

/// Throws the exceptions of Gpu. One thread.
class Bench {
 public:
  Bench(Gpu& gpu, Results& results, const Scale& scale);

  Gpu& gpu() const { return gpu_; }
  Results& results() const { return results_; }
  const Scale& scale() const { return scale_; }
  const DevicePtr& device() const { return device_; }
  DeviceLayoutPtr device_layout(const LayoutPtr& layout) const;

  /// Memory for the user's side and for packed bytes, 4096-byte aligned.
  Address user() const { return user_; }
  Address packed() const { return packed_; }
  std::int64_t user_bytes() const { return user_bytes_; }
  std::int64_t packed_bytes() const { return packed_bytes_; }
  /// Whether a layout's lowest byte can be at user() and its packed bytes at packed().
  bool fits(std::int64_t span, std::int64_t size) const { return span <= user_bytes_ && size <= packed_bytes_; }

  /// The number of places of this size to use in turn: more than fit into a cache, if there is enough memory.
  int places(std::int64_t span, std::int64_t size) const;
  /// The same move at each of the places. Layouts start at byte 0.
  std::vector<Batch> batches(const LayoutPtr& layout, Direction direction, const KernelOptions& options = {}) const;
  /// Returns a function that enqueues the next of the batches.
  std::function<void()> in_turn(std::vector<Batch> batches) const;
  /// Returns a function that enqueues a copy of `bytes` bytes from the user's to the packed memory, at the next place.
  std::function<void()> copy_in_turn(std::int64_t bytes) const;

  Batch batch(std::span<const BatchItem> items, const KernelOptions& options = {}) const;
  void launch(const Batch& batch) const;

  /// Device seconds of one call of each variant, launched one after the other without waiting: the median over rounds
  /// in which all variants take turns.
  std::vector<double> medians(const std::vector<std::function<void()>>& variants) const;
  /// The same by the host's clock, for functions that wait for their work.
  std::vector<double> host_medians(const std::vector<std::function<void()>>& variants) const;

  /// Packs and unpacks a layout that starts at byte 0, and compares every byte with the CPU's reference.
  bool right(const LayoutPtr& layout, const KernelOptions& options = {}) const;

 private:
  Gpu& gpu_;
  Results& results_;
  Scale scale_;
  DevicePtr device_;
  Address user_ = 0, packed_ = 0;
  std::int64_t user_bytes_ = 0, packed_bytes_ = 0;
};

/// Bytes of the 32-byte sectors that a layout touches if its byte 0 is aligned to a sector. Its blocks must ascend.
std::int64_t sector_bytes(const LayoutPtr& layout);
/// The bytes that must be transferred from and to memory: the sectors and the packed bytes.
inline std::int64_t traffic(const LayoutPtr& layout) { return sector_bytes(layout) + layout->size(); }
/// A layout of `count` blocks. Throws if it is invalid.
LayoutPtr rows(std::int64_t count, std::int64_t block, std::int64_t stride);
std::string bytes_text(std::int64_t bytes);

// The goals, each in its own file. They add rows to bench.results().
void measure_limit(const Bench& bench);
void measure_by_hand(const Bench& bench);
void measure_floor(const Bench& bench);
void measure_halo(const Bench& bench);
void measure_copies(const Bench& bench);
void sweep_thresholds(const Bench& bench);

}  // namespace gpu
