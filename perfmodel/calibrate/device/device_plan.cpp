// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/device/device_plan.hpp"

#include <algorithm>

#include "datatype/build.hpp"
#include "perfmodel/calibrate/common/sample_plan.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr std::int64_t largest_device_footprint = std::int64_t{256} << 20;
constexpr std::int64_t max_listed = std::int64_t{1} << 20;
constexpr std::int64_t min_bulk = std::int64_t{1} << 20;  ///< for shorter ones the launches take more time than the
                                                          ///< copies
constexpr std::int64_t min_bulk_block = 256;
constexpr std::int64_t max_rows = std::int64_t{1} << 18;  ///< of a 2-D copy; more and shorter rows are never chosen

std::int64_t jump_of(const DevicePoint& p) {
  if (p.key.walk == DeviceWalk::listed) return 3 * p.block();
  return jump_of(p.key.walk == DeviceWalk::wide ? Spread::wide : Spread::dense, p.block());
}

bool exists(const DevicePoint& p) {
  const std::int64_t blocks = p.bytes() / p.block();
  if (blocks < 2 || blocks * jump_of(p) > largest_device_footprint) return false;
  if (p.key.work == DeviceWork::copy) return blocks <= max_rows;
  if (p.key.work == DeviceWork::bulk)
    return p.bytes() >= min_bulk && p.block() >= min_bulk_block && p.bytes_index % 2 == 1;
  if (p.key.walk == DeviceWalk::listed) return blocks >= 16 && blocks <= max_listed;
  return p.key.walk == DeviceWalk::dense || 2 * p.block() < wide_jump;
}

int level_of(const DevicePoint& p) {
  // Together with the kernels that they are compared with.
  if (p.key.work == DeviceWork::bulk)
    return level_of({p.kind, p.floor, {DeviceWork::kernel, p.key.direction}, p.bytes_index, p.block_index, 0, {}});
  const bool coarse = p.bytes_index % 2 == 1 && (p.block_index == 1 || p.block_index == 4 || p.block_index == 6);
  if (p.key.walk == DeviceWalk::dense)
    return coarse || (p.key.work == DeviceWork::copy && p.block_index == 7) ? 0 : p.bytes_index % 2 == 1 ? 1 : 2;
  return coarse ? 1 : p.bytes_index % 2 == 1 ? 3 : 4;
}

}  // namespace

std::int64_t DevicePoint::bytes() const noexcept {
  return kind == Kind::copy || kind == Kind::message ? curve_bytes_at(bytes_index) : bytes_at(bytes_index);
}

std::string DevicePoint::id() const {
  if (kind == Kind::floor) return "gpu.floor." + std::string(name(floor));
  if (kind == Kind::message) return "gpu.contiguous." + std::string(name(distance)) + "." + std::to_string(bytes_index);
  const std::string direction(name(key.direction));
  if (kind == Kind::copy) return "gpu.contiguous." + direction + "." + std::to_string(bytes_index);
  return "gpu." + std::string(name(key.work)) + "." + direction + "." + std::string(name(key.walk)) + "." +
         std::to_string(bytes_index) + "." + std::to_string(block_index);
}

std::vector<DevicePoint> make_device_plan(bool quick) {
  std::vector<DevicePoint> plan;
  plan.reserve(static_cast<std::size_t>(device_floor_count + device_grid_count));
  for (int i = 0; i < device_floor_count; ++i)
    plan.push_back({DevicePoint::Kind::floor, static_cast<DeviceFloor>(i), {}, 0, 0, 0, {}});
  for (Direction direction : {Direction::pack, Direction::unpack})
    for (int i = 0; i < curve_points; i += 2)  // protocols do not change slightly above the powers of two
      plan.push_back({DevicePoint::Kind::copy, {}, {DeviceWork::copy, direction}, i, 0, 0, {}});
  for (int index = 0; index < device_grid_count; ++index)
    for (int i = 0; i < bytes_points; ++i)
      for (int k = 0; k < block_points; ++k) {
        DevicePoint point{DevicePoint::Kind::grid, {}, device_grid_key(index), i, k, 0, {}};
        if (!exists(point)) continue;
        point.level = level_of(point);
        if (!quick || point.level < quick_levels) plan.push_back(point);
      }
  std::stable_sort(plan.begin(), plan.end(),
                   [](const DevicePoint& a, const DevicePoint& b) { return a.level < b.level; });
  return plan;
}

std::vector<DevicePoint> make_wire_plan(Distance peer) {
  std::vector<DevicePoint> plan;
  for (Distance distance : {peer, Distance::self})
    for (int i = 0; i < curve_points; ++i) plan.push_back({DevicePoint::Kind::message, {}, {}, i, 0, 0, distance});
  return plan;
}

LayoutPtr layout_of(const DevicePoint& point) {
  if (point.kind != DevicePoint::Kind::grid) return intern(*make_block(0, point.bytes()));
  const std::int64_t block = point.block(), blocks = point.bytes() / block, jump = jump_of(point);
  if (point.key.walk != DeviceWalk::listed) return intern(*make_repeat(*make_block(0, block), blocks, jump));
  // No two adjacent blocks, and no repeating pattern.
  std::vector<std::int64_t> offsets, lengths(static_cast<std::size_t>(blocks), block);
  std::uint32_t random = 2463534242u;
  for (std::int64_t i = 0; i < blocks; ++i) {
    random ^= random << 13, random ^= random >> 17, random ^= random << 5;
    offsets.push_back(i * jump + (random >> 16 & 1) * block);
  }
  return intern(*make_blocks(offsets, lengths));
}

void store(const DevicePoint& point, double seconds, DeviceMeasurements* measured) noexcept {
  switch (point.kind) {
    case DevicePoint::Kind::floor: return measured->set(point.floor, seconds);
    case DevicePoint::Kind::copy:
      return measured->dma[static_cast<std::size_t>(point.key.direction)].set(point.bytes_index, seconds);
    case DevicePoint::Kind::message:
      return measured->contiguous[static_cast<std::size_t>(point.distance)].set(point.bytes_index, seconds);
    case DevicePoint::Kind::grid: return (*measured)[point.key].set(point.bytes_index, point.block_index, seconds);
  }
}

}  // namespace bestride::inline perfmodel
