// SPDX-License-Identifier: Apache-2.0
// DeviceCosts for machines without calibration. None of the figures was measured in this project; they come from
// published measurements and specifications, rounded to the cautious side:
//   - launch and wait 8 us, copy and wait 9 us: Pearson et al., HPDC'21 (TEMPI), figures 9 and 10, V100 with NVLink:
//     a pack kernel with its synchronization 12 to 13 us, a copy between host and device 11 us; later drivers take
//     about two thirds of it.
//   - device memory 1 TB/s: the same figure 10: 4 MiB packed from blocks of 128 B in 8 us beyond the floor, read and
//     written. By their data sheets V100 has 0.9 TB/s, A100 1.6 to 2 TB/s, H100 3.4 TB/s.
//   - sectors of 32 bytes: the smallest unit of device memory traffic (CUDA C++ Best Practices Guide, coalesced
//   access).
//   - copies 22 GB/s: PCIe 4.0 x16 has 31.5 GB/s in each direction before packet headers (PCI-SIG), 24 to 26 GB/s of
//     payload. PCIe 5.0 has twice as much.
//   - kernels reach 90 % of that when they write host memory, and 70 % when they read it, because every load waits for
//     the link.
//   - 15 ns for each row of a 2-D copy: assumed; at 4 KiB it is a tenth of the row's transfer.
//   - 8 us for each chunk of a pipeline: two enqueued operations of 2.5 to 3 us and an event.
//   - bulk copies and CUDA graphs: as fast as the simpler alternative, so neither is used until a measurement shows
//     that it is faster.
//   - GPU-aware MPI: on a node 8 us (figure 9: 6 us between GPUs) and 20 GB/s; between nodes the host's network and 2
//   us.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>

#include "perfmodel/device/costs.hpp"
#include "perfmodel/host/position.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr double us = 1e-6;
constexpr double launch = 8 * us, sync = 1.5 * us, chunk = 8 * us, copy_floor = 9 * us, enqueued = 2.5 * us;
constexpr double memory = 1e12, link = 22e9;  ///< bytes/s
constexpr double writing = 0.9, reading = 0.7;
constexpr double row = 15e-9;
constexpr double sector = 32;
constexpr double list_entry = 16;  ///< bytes that a kernel reads to find a block

double dma(double bytes) noexcept { return copy_floor + bytes / link; }

/// Seconds of a kernel beyond its launch, as far as device memory determines them.
double memory_seconds(Direction direction, DeviceWalk walk, double bytes, double block,
                      bool packed_on_device) noexcept {
  const double blocks = std::max(1.0, bytes / block);
  const double whole_sectors = std::ceil(block / sector) * sector;
  double touched = walk == DeviceWalk::dense ? std::min(blocks * whole_sectors, 2 * bytes) : blocks * whole_sectors;
  // A sector that is written in part must be read first.
  if (direction == Direction::unpack && block < sector) touched *= 2;
  if (walk == DeviceWalk::listed) touched += blocks * list_entry;
  return (touched + (packed_on_device ? bytes : 0)) / memory;
}

double seconds(const DeviceGridKey& key, double bytes, double block) noexcept {
  switch (key.work) {
    case DeviceWork::bulk:
    case DeviceWork::kernel: return launch + memory_seconds(key.direction, key.walk, bytes, block, true);
    case DeviceWork::oneshot: {
      const double over_link = bytes / (link * (key.direction == Direction::pack ? writing : reading));
      return launch + std::max(over_link, memory_seconds(key.direction, key.walk, bytes, block, false));
    }
    case DeviceWork::copy: break;
  }
  return dma(bytes) + std::max(1.0, bytes / block) * row;
}

double contiguous_message(Distance distance, double bytes) noexcept {
  if (distance == Distance::self) return launch + 2 * bytes / memory;
  return distance == Distance::network ? 4 * us + bytes / 3.125e9 : 8 * us + bytes / 20e9;
}

}  // namespace

DeviceCosts make_built_in_device_costs() noexcept {
  DeviceCosts costs;
  DeviceMeasurements& filled = costs.filled_;
  for (int index = 0; index < device_grid_count; ++index)
    for (int i = 0; i < bytes_points; ++i)
      for (int k = 0; k < block_points; ++k)
        filled.grids[static_cast<std::size_t>(index)].set(
            i, k,
            seconds(device_grid_key(index), static_cast<double>(bytes_at(i)),
                    static_cast<double>(block_lengths[static_cast<std::size_t>(k)])));
  for (int i = 0; i < curve_points; ++i) {
    const auto bytes = static_cast<double>(curve_bytes_at(i));
    for (CostCurve& curve : filled.dma) curve.set(i, dma(bytes));
    for (int distance = 0; distance < distance_count; ++distance)
      filled.contiguous[static_cast<std::size_t>(distance)].set(
          i, contiguous_message(static_cast<Distance>(distance), bytes));
  }
  filled.set(DeviceFloor::launch, launch);
  filled.set(DeviceFloor::sync, sync);
  filled.set(DeviceFloor::chunk, chunk);
  for (DeviceFloor floor : {DeviceFloor::again, DeviceFloor::graph}) filled.set(floor, launch);
  for (DeviceFloor floor : {DeviceFloor::again_many, DeviceFloor::graph_many})
    filled.set(floor, launch + many_copies * enqueued);
  costs.finish();
  return costs;
}

const DeviceCosts& DeviceCosts::built_in() noexcept {
  // Never destroyed: MPI calls may come after static destructors have run.
  alignas(DeviceCosts) static std::byte storage[sizeof(DeviceCosts)];
  static const DeviceCosts* const costs = ::new (storage) DeviceCosts(make_built_in_device_costs());
  return *costs;
}

}  // namespace bestride::inline perfmodel
