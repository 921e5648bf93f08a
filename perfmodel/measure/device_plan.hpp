// SPDX-License-Identifier: Apache-2.0
#pragma once
// What calibration measures of a GPU and in which order: coarse first. Knows no driver.
#include <cstdint>
#include <string>
#include <vector>

#include "datatype/layout.hpp"
#include "perfmodel/device_costs.hpp"

namespace bestride {

struct DevicePoint {
  enum class Kind : std::uint8_t { floor, copy, grid, wire };
  Kind kind = Kind::floor;
  DeviceFloor floor = DeviceFloor::launch;  ///< floor
  DeviceGridKey key;                        ///< grid; of a copy only the direction
  int bytes_index = 0;                      ///< copy, wire: on the curve's axis; grid: on the grids'
  int block_index = 0;                      ///< grid
  int level = 0;                            ///< 0: coarsest
  Distance distance = Distance::node;       ///< wire

  std::int64_t bytes() const noexcept;
  std::int64_t block() const noexcept { return block_lengths[static_cast<std::size_t>(block_index)]; }
  /// One word: "gpu.kernel.pack.dense.5.1".
  std::string id() const;
  bool operator==(const DevicePoint&) const = default;
};

/// `quick`: the levels Plan::quick_levels has.
std::vector<DevicePoint> make_device_plan(bool quick);

/// Messages of device memory to oneself and to the other rank, which is at `peer`. For a GPU-aware MPI.
std::vector<DevicePoint> make_wire_plan(Distance peer);

/// What the point moves: of a grid blocks of block() bytes with their walk, else contiguous bytes. Null if memory runs out.
LayoutPtr layout_of(const DevicePoint& point);

void store(const DevicePoint& point, double seconds, DeviceMeasurements* measured) noexcept;

}  // namespace bestride
