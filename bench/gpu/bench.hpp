// SPDX-License-Identifier: Apache-2.0
#pragma once
// Bench: memory to move things in, and how a time is taken: variants take turns, medians over rounds, several places in
// memory in turn so that nothing is found in the cache.
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
  std::vector<std::int64_t> sizes;  ///< packed bytes of what is measured against the limit
  std::int64_t large = 0;           ///< of other cases of a certain size, if it fits
  std::int64_t edge = 0;            ///< points along a side of the halo's cube
  double seconds = 0.05;            ///< to measure one case for
};

/// Throws what Gpu throws. One thread.
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

  /// How many places of so many bytes to go through by turns: more than a cache holds, if memory has as much.
  int places(std::int64_t span, std::int64_t size) const;
  /// The same move at each of the places. Layouts start at byte 0.
  std::vector<Batch> batches(const LayoutPtr& layout, Direction direction, const KernelOptions& options = {}) const;
  /// Enqueues the next of them.
  std::function<void()> in_turn(std::vector<Batch> batches) const;
  /// Enqueues a copy of `bytes` bytes from the user's to the packed memory, at the next of the places.
  std::function<void()> copy_in_turn(std::int64_t bytes) const;

  Batch batch(std::span<const BatchItem> items, const KernelOptions& options = {}) const;
  void launch(const Batch& batch) const;

  /// Device seconds of one call of each, launched one after the other without waiting: the median over rounds in which
  /// all took turns.
  std::vector<double> medians(const std::vector<std::function<void()>>& variants) const;
  /// The same by the host's clock, for things that wait for themselves.
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

/// Bytes of the 32-byte sectors a layout touches when its byte 0 lies on a sector's border; its blocks must ascend.
std::int64_t sector_bytes(const LayoutPtr& layout);
/// What has to cross the memory's interface: those, and the packed bytes.
inline std::int64_t traffic(const LayoutPtr& layout) { return sector_bytes(layout) + layout->size(); }
/// `count` blocks, a new layout. Throws if it can't be.
LayoutPtr rows(std::int64_t count, std::int64_t block, std::int64_t stride);
std::string bytes_text(std::int64_t bytes);

// The goals, each in a file of its own. They add rows to bench.results().
void measure_limit(const Bench& bench);
void measure_by_hand(const Bench& bench);
void measure_floor(const Bench& bench);
void measure_halo(const Bench& bench);
void measure_copies(const Bench& bench);
void sweep_thresholds(const Bench& bench);

}  // namespace gpu
