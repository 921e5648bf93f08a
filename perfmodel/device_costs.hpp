// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeviceCosts: what moving a layout between device memory and a contiguous buffer costs on one kind of GPU, as curves.
//
// Parts, not ways: kernels, copies and messages are measured apart and a way is the sum of its parts, or their overlap (pipelined),
// so that three dozen curves serve five ways at any chunk, to any distance. Everything but the wire is measured through
// cuda::PackTransfer and cuda::UnpackTransfer, so it contains what a call pays: buffers from the pools, events, looking.
// Alternative that lost: one grid a way and a distance. Five times the points, and a pipeline's chunk would be one more axis.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/cuda/way.hpp"
#include "model/distance.hpp"
#include "perfmodel/cost_grid.hpp"
#include "perfmodel/position.hpp"
#include "perfmodel/shape.hpp"

namespace bestride {

/// What is timed, from the call until it is known to have finished.
enum class DeviceWork : std::uint8_t {
  kernel,   ///< a kernel between the layout and device memory
  oneshot,  ///< a kernel between the layout and page-locked host memory
  copy,     ///< a 2-D copy between the layout and page-locked host memory; blocks are rows
  bulk,     ///< `kernel`, its blocks moved by the bulk copy engine
};
inline constexpr int device_work_count = 4;

/// Out of the user's buffer (sending, MPI_Pack) or into it.
enum class DeviceDirection : std::uint8_t { pack, unpack };
inline constexpr int device_direction_count = 2;

/// Where the blocks lie: twice their length apart, 2112 bytes apart (what Spread calls wide), or at irregular distances.
enum class DeviceWalk : std::uint8_t { dense, wide, listed };
inline constexpr int device_walk_count = 3;

/// Seconds that no number of bytes explains.
enum class DeviceFloor : std::uint8_t {
  launch,  ///< the shortest kernel: launching it and noticing its end
  sync,    ///< noticing the end of nothing: recording an event and asking for it
  chunk,   ///< one chunk of a pipeline that moves next to nothing: what enqueueing costs
  // What is kept and enqueued again (cuda::Sequence), until its end is known: call by call, or as a CUDA graph.
  again,       ///< the shortest kernel
  graph,       ///< the same, as a graph
  again_many,  ///< the shortest kernel and many_copies short copies to the host
  graph_many,  ///< the same, as a graph
};
inline constexpr int device_floor_count = 7;
inline constexpr int many_copies = 26;  ///< a halo's

std::string_view name(DeviceWork) noexcept;
std::string_view name(DeviceDirection) noexcept;
std::string_view name(DeviceWalk) noexcept;
std::string_view name(DeviceFloor) noexcept;

struct DeviceGridKey {
  DeviceWork work = DeviceWork::kernel;
  DeviceDirection direction = DeviceDirection::pack;
  DeviceWalk walk = DeviceWalk::dense;  ///< `copy` and `bulk`: dense
  bool operator==(const DeviceGridKey&) const = default;
};
inline constexpr int device_grid_count = device_direction_count * (2 * device_walk_count + 2);
int device_grid_index(const DeviceGridKey& key) noexcept;
DeviceGridKey device_grid_key(int index) noexcept;

/// What was measured, NaN where nothing was.
struct DeviceMeasurements {
  DeviceMeasurements() noexcept { log_floors.fill(CostCurve::unmeasured); }
  CostGrid& operator[](const DeviceGridKey& key) noexcept { return grids[static_cast<std::size_t>(device_grid_index(key))]; }
  const CostGrid& operator[](const DeviceGridKey& key) const noexcept { return grids[static_cast<std::size_t>(device_grid_index(key))]; }
  void set(DeviceFloor floor, double seconds) noexcept;
  double seconds(DeviceFloor floor) const noexcept;  ///< NaN: not measured
  bool any() const noexcept;                         ///< something was measured

  std::array<CostGrid, device_grid_count> grids;
  std::array<CostCurve, device_direction_count> dma;  ///< contiguous bytes to (pack) and from page-locked host memory
  std::array<CostCurve, distance_count> wire;         ///< contiguous device memory given to a GPU-aware MPI, one message
  std::array<float, device_floor_count> log_floors;   ///< log2 of seconds
  bool stand_in = false;  ///< measured on a stand-in driver: of no GPU
};

/// Predicted seconds of each way, infinity where the layout itself forbids it, and the chunk `pipelined` is predicted for.
struct DevicePrediction {
  std::array<double, cuda::transfer_way_count> seconds{};
  std::int64_t chunk = 0;
};

/// Immutable.
class DeviceCosts {
 public:
  /// Chunks of a pipeline: 256 KiB .. 8 MiB.
  static constexpr int chunk_count = 6;
  static constexpr std::int64_t chunk_at(int i) noexcept { return std::int64_t{256 * 1024} << i; }

  /// For machines that were never calibrated: analytic, cautious (device_built_in.cpp has the figures and their sources). Never
  /// destroyed.
  static const DeviceCosts& built_in() noexcept;
  /// Completes what was measured: holes by interpolation, what has too few points by the built-in curves. Measurements on a stand-in
  /// are kept but not used, unless BESTRIDE_TEST_STAND_IN says so.
  static DeviceCosts from(DeviceMeasurements measured);

  /// All ways of one message: `host_wire` and `device_wire` are the seconds MPI needs for the contiguous bytes from host and from
  /// device memory. No allocation, no lock; at most 200 ns.
  DevicePrediction predict(const Shape& shape, DeviceDirection direction, double host_wire, double device_wire) const noexcept;
  /// Of numbers that cross as `code_bytes` of codes: the message up to host memory and its end, where a kernel on the device makes or reads the
  /// codes in `launches` (at least 1) one after the other. Taken to cost what packing does; what the CPU would need for them is not known here.
  double coded_seconds(const Shape& shape, DeviceDirection direction, std::int64_t code_bytes, int launches) const noexcept;
  /// Blocks of so many bytes and more were measured to be faster by the bulk copy engine; 0: none, or nothing was measured.
  std::int64_t bulk_from(DeviceDirection direction) const noexcept { return bulk_from_[static_cast<std::size_t>(direction)]; }
  /// What is enqueued again and again in so many driver calls was measured to be faster as a CUDA graph.
  bool graph_is_faster(int operations) const noexcept;
  /// Of a GPU-aware MPI, contiguous bytes in device memory.
  double wire_seconds(double bytes, Distance distance) const noexcept { return filled_.wire[static_cast<std::size_t>(distance)].at(bytes); }

  const DeviceMeasurements& measured() const noexcept { return measured_; }
  const DeviceMeasurements& filled() const noexcept { return filled_; }
  /// Whether predictions come from what was measured.
  bool calibrated() const noexcept { return calibrated_; }

 private:
  friend DeviceCosts make_built_in_device_costs() noexcept;
  DeviceCosts() = default;
  void finish() noexcept;
  /// Of a kernel that packs or unpacks this shape, but `bytes` of it.
  double kernel_seconds(DeviceWork work, DeviceDirection direction, const Shape& shape, const Position& position, const AxisPosition& bytes) const noexcept;
  DeviceMeasurements measured_;
  DeviceMeasurements filled_;
  double launch_ = 0, sync_ = 0, chunk_ = 0;                                          ///< floors, seconds
  std::array<double, device_direction_count> dma_floor_{};                            ///< of the shortest copy
  std::array<std::array<double, chunk_count>, device_direction_count> dma_of_chunk_{};  ///< seconds
  std::array<std::int64_t, device_direction_count> bulk_from_{};
  bool calibrated_ = false;
};

}  // namespace bestride
