// SPDX-License-Identifier: Apache-2.0
#pragma once
// What calibration measures of a GPU, and in which order: coarse points first. Does not use the driver.
#include <cstdint>
#include <string>
#include <vector>

#include "datatype/layout.hpp"
#include "perfmodel/device/costs.hpp"

namespace bestride::inline perfmodel {

struct DevicePoint {
  enum class Kind : std::uint8_t { floor, copy, grid, message };
  Kind kind = Kind::floor;
  DeviceFloor floor = DeviceFloor::launch;  ///< floor
  DeviceGridKey key;                        ///< grid; for a copy only the direction
  int bytes_index = 0;                      ///< copy, message: on the curve's axis; grid: on the grids'
  int block_index = 0;                      ///< grid
  int level = 0;                            ///< 0: coarsest
  Distance distance = Distance::node;       ///< message

  std::int64_t bytes() const noexcept;
  std::int64_t block() const noexcept { return block_lengths[static_cast<std::size_t>(block_index)]; }
  /// One word: "gpu.kernel.pack.dense.5.1".
  std::string id() const;
  bool operator==(const DevicePoint&) const = default;
};

/// `quick`: the first quick_levels levels (perfmodel/calibrate/common/sample_plan.hpp).
std::vector<DevicePoint> make_device_plan(bool quick);

/// Messages of device memory to the rank itself and to the other rank, which is at distance `peer`. For a GPU-aware MPI
/// library.
std::vector<DevicePoint> make_wire_plan(Distance peer);

/// What the point moves: for a grid, blocks of block() bytes with the point's walk; else contiguous bytes. Null if out
/// of memory.
LayoutPtr layout_of(const DevicePoint& point);

void store(const DevicePoint& point, double seconds, DeviceMeasurements* measured) noexcept;

}  // namespace bestride::inline perfmodel
