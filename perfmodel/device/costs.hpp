// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceCosts: the cost of moving a layout between device memory and a contiguous buffer on one kind of GPU, as curves.
//
// Kernels, copies and messages are measured separately. The time of a transfer method is the sum of its parts, or of
// their overlap (pipelined), so about 36 curves cover five methods with any chunk size and any distance. All parts
// except messages are measured through cuda::PackTransfer and cuda::UnpackTransfer, so they include the overheads of a
// call: buffers from the pools, events, polling. Alternative considered: one grid for each method and distance, which
// needs five times as many points, and one more axis for the chunk of a pipeline.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/cuda/transfer/transfer_method.hpp"
#include "kernels/direction.hpp"
#include "model/distance.hpp"
#include "perfmodel/host/cost_grid.hpp"
#include "perfmodel/host/position.hpp"
#include "perfmodel/host/shape.hpp"

namespace bestride::inline perfmodel {

/// What is timed, from the call until it is known to be complete.
enum class DeviceWork : std::uint8_t {
  kernel,   ///< a kernel between the layout and device memory
  oneshot,  ///< a kernel between the layout and page-locked host memory
  copy,     ///< a 2-D copy between the layout and page-locked host memory; blocks are rows
  bulk,     ///< as `kernel`, but the bulk copy engine moves the blocks
};
inline constexpr int device_work_count = 4;

/// The directions: from the user's buffer (sending, MPI_Pack), or into it.
inline constexpr int device_direction_count = 2;

/// The distances of the blocks: twice their length, 2112 bytes (Spread::wide), or irregular.
enum class DeviceWalk : std::uint8_t { dense, wide, listed };
inline constexpr int device_walk_count = 3;

/// Times that do not depend on the number of bytes, in seconds.
enum class DeviceFloor : std::uint8_t {
  launch,  ///< the shortest kernel: launch it and detect its completion
  sync,    ///< record an event after no work and query it
  chunk,   ///< one chunk of a pipeline that moves almost no bytes: the cost of enqueueing
  // A sequence of operations that is kept and enqueued repeatedly (cuda::Sequence), until it is known to be complete:
  // call by call, or as a CUDA graph.
  again,       ///< the shortest kernel
  graph,       ///< the same, as a graph
  again_many,  ///< the shortest kernel and many_copies short copies to the host
  graph_many,  ///< the same, as a graph
};
inline constexpr int device_floor_count = 7;
inline constexpr int many_copies = 26;  ///< the number in a halo exchange

std::string_view name(DeviceWork) noexcept;
std::string_view name(Direction) noexcept;
std::string_view name(DeviceWalk) noexcept;
std::string_view name(DeviceFloor) noexcept;

struct DeviceGridKey {
  DeviceWork work = DeviceWork::kernel;
  Direction direction = Direction::pack;
  DeviceWalk walk = DeviceWalk::dense;  ///< `copy` and `bulk`: dense
  bool operator==(const DeviceGridKey&) const = default;
};
inline constexpr int device_grid_count = device_direction_count * (2 * device_walk_count + 2);
int device_grid_index(const DeviceGridKey& key) noexcept;
DeviceGridKey device_grid_key(int index) noexcept;

/// What was measured; NaN for what was not.
struct DeviceMeasurements {
  DeviceMeasurements() noexcept { log_floors.fill(unmeasured); }
  CostGrid& operator[](const DeviceGridKey& key) noexcept {
    return grids[static_cast<std::size_t>(device_grid_index(key))];
  }
  const CostGrid& operator[](const DeviceGridKey& key) const noexcept {
    return grids[static_cast<std::size_t>(device_grid_index(key))];
  }
  void set(DeviceFloor floor, double seconds) noexcept;
  double seconds(DeviceFloor floor) const noexcept;  ///< NaN: not measured
  bool any() const noexcept;                         ///< something was measured

  std::array<CostGrid, device_grid_count> grids;
  std::array<CostCurve, device_direction_count> dma;  ///< contiguous bytes to (pack) and from (unpack) page-locked host
                                                      ///< memory
  std::array<CostCurve, distance_count> contiguous;   ///< contiguous device memory passed to a GPU-aware MPI library,
                                                      ///< one message
  std::array<float, device_floor_count> log_floors;   ///< log2 of seconds
  bool stand_in = false;                              ///< measured on a stand-in driver: the values describe no GPU
};

/// Predicted seconds of each method, infinity if the layout does not allow it, and the chunk size assumed for
/// `pipelined`.
struct DevicePrediction {
  std::array<double, cuda::transfer_method_count> seconds{};
  std::int64_t chunk = 0;
};

/// Immutable.
class DeviceCosts {
 public:
  /// Chunks of a pipeline: 256 KiB .. 8 MiB.
  static constexpr int chunk_count = 6;
  static constexpr std::int64_t chunk_at(int i) noexcept { return std::int64_t{256 * 1024} << i; }

  /// Values for machines without calibration: analytic and cautious (perfmodel/device/built_in.cpp has the figures and
  /// their sources). Never destroyed.
  static const DeviceCosts& built_in() noexcept;
  /// Completes the measurements: interpolates missing points, and uses the built-in curve where there are too few
  /// points. Measurements on a stand-in are stored but not used, unless BESTRIDE_FORCE=stand_in=1 permits it.
  static DeviceCosts from(DeviceMeasurements measured);

  /// The times of all methods for one message. `host_message` and `device_message`: the seconds that MPI needs for the
  /// contiguous bytes from host and from device memory. No allocation, no lock; at most 200 ns.
  DevicePrediction predict(const Shape& shape, Direction direction, double host_message,
                           double device_message) const noexcept;
  /// The block length in bytes from which the bulk copy engine was measured to be faster; 0: none, or not measured.
  std::int64_t bulk_from(Direction direction) const noexcept { return bulk_from_[static_cast<std::size_t>(direction)]; }
  /// True if a repeated sequence of `operations` driver calls was measured to be faster as a CUDA graph.
  bool graph_is_faster(int operations) const noexcept;
  /// Seconds for a message of contiguous device memory through a GPU-aware MPI library.
  double message_seconds(double bytes, Distance distance) const noexcept {
    return filled_.contiguous[static_cast<std::size_t>(distance)].at(bytes);
  }

  const DeviceMeasurements& measured() const noexcept { return measured_; }
  const DeviceMeasurements& filled() const noexcept { return filled_; }
  /// True if predictions come from measurements.
  bool calibrated() const noexcept { return calibrated_; }

 private:
  friend DeviceCosts make_built_in_device_costs() noexcept;
  DeviceCosts() = default;
  void finish() noexcept;
  /// Seconds of a kernel that packs or unpacks `bytes` bytes of this shape.
  double kernel_seconds(DeviceWork work, Direction direction, const Shape& shape, const Position& position,
                        const AxisPosition& bytes) const noexcept;
  DeviceMeasurements measured_;
  DeviceMeasurements filled_;
  double launch_ = 0, sync_ = 0, chunk_ = 0;                                            ///< floors, seconds
  std::array<double, device_direction_count> dma_floor_{};                              ///< of the shortest copy
  std::array<std::array<double, chunk_count>, device_direction_count> dma_of_chunk_{};  ///< seconds
  std::array<std::int64_t, device_direction_count> bulk_from_{};
  bool calibrated_ = false;
};

}  // namespace bestride::inline perfmodel
