// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/device/costs.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/variables.hpp"
#include "perfmodel/host/position.hpp"

namespace bestride::inline perfmodel {
namespace {

constexpr float log_first_chunk = 18;
static_assert(DeviceCosts::chunk_at(0) == std::int64_t{1} << 18);
/// Grids of one direction: for `kernel` and `oneshot` one per walk, then `copy` and `bulk`.
constexpr int grids_of_direction = 2 * device_walk_count + 2;
constexpr bool has_walks(DeviceWork work) { return work == DeviceWork::kernel || work == DeviceWork::oneshot; }

/// log2(1.05): the more complex alternative must be faster by 5 %.
constexpr float margin = 0.0704f;

template <class Axis>
int measured_points(const Axis& values) noexcept {
  return static_cast<int>(std::count_if(values.begin(), values.end(), [](float value) { return !std::isnan(value); }));
}

/// As complete() for host memory: removes noise and fills missing points. With too few points, `fallback` is used.
void complete_curve(CostCurve& curve, const CostCurve& fallback) noexcept {
  smooth(&curve);
  if (measured_points(curve.log_seconds) < min_points || !fill(&curve)) curve = fallback;
}

void complete_grids(DeviceMeasurements& costs, const DeviceMeasurements& fallback, DeviceWork work,
                    Direction direction) noexcept {
  CostGrid& dense = costs[{work, direction, DeviceWalk::dense}];
  smooth(&dense);
  if (dense.measured() < min_points) {
    dense = fallback[{work, direction, DeviceWalk::dense}];
    for (DeviceWalk walk : {DeviceWalk::wide, DeviceWalk::listed})
      if (has_walks(work)) costs[{work, direction, walk}] = fallback[{work, direction, walk}];
    return;
  }
  fill(&dense);
  if (!has_walks(work)) return;
  for (DeviceWalk walk : {DeviceWalk::wide, DeviceWalk::listed}) {
    CostGrid& grid = costs[{work, direction, walk}];
    smooth(&grid);
    fill(&grid, &dense);
  }
}

void complete(DeviceMeasurements& costs, const DeviceMeasurements& fallback) noexcept {
  for (int d = 0; d < device_direction_count; ++d) {
    const auto direction = static_cast<Direction>(d);
    for (DeviceWork work : {DeviceWork::kernel, DeviceWork::oneshot, DeviceWork::copy, DeviceWork::bulk})
      complete_grids(costs, fallback, work, direction);
    complete_curve(costs.dma[static_cast<std::size_t>(d)], fallback.dma[static_cast<std::size_t>(d)]);
  }
  for (std::size_t distance = 0; distance < costs.contiguous.size(); ++distance)
    complete_curve(costs.contiguous[distance], fallback.contiguous[distance]);
  for (std::size_t floor = 0; floor < costs.log_floors.size(); ++floor)
    if (std::isnan(costs.log_floors[floor])) costs.log_floors[floor] = fallback.log_floors[floor];
}

/// The shortest block length from which on the bulk copy engine was faster for every measured message.
std::int64_t min_bulk(const CostGrid& bulk, const CostGrid& words) noexcept {
  std::int64_t from = 0;
  for (std::size_t k = block_points; k-- > 0;) {
    bool measured = false, faster = true;
    for (std::size_t i = 0; i < bytes_points; ++i) {
      const float plain = words.log_seconds[i][k], other = bulk.log_seconds[i][k];
      if (std::isnan(plain) || std::isnan(other)) continue;
      measured = true;
      faster = faster && other < plain - margin;
    }
    if (!faster) break;
    if (measured) from = block_lengths[k];
  }
  return from;
}

}  // namespace

int device_grid_index(const DeviceGridKey& key) noexcept {
  const int within = has_walks(key.work)
                         ? static_cast<int>(key.work) * device_walk_count + static_cast<int>(key.walk)
                         : 2 * device_walk_count + static_cast<int>(key.work) - static_cast<int>(DeviceWork::copy);
  return static_cast<int>(key.direction) * grids_of_direction + within;
}

DeviceGridKey device_grid_key(int index) noexcept {
  const int within = index % grids_of_direction;
  const auto direction = static_cast<Direction>(index / grids_of_direction);
  if (within >= 2 * device_walk_count)
    return {within == 2 * device_walk_count ? DeviceWork::copy : DeviceWork::bulk, direction};
  return {static_cast<DeviceWork>(within / device_walk_count), direction,
          static_cast<DeviceWalk>(within % device_walk_count)};
}

void DeviceMeasurements::set(DeviceFloor floor, double seconds) noexcept {
  log_floors[static_cast<std::size_t>(floor)] = static_cast<float>(std::log2(seconds));
}

double DeviceMeasurements::seconds(DeviceFloor floor) const noexcept {
  return std::exp2(static_cast<double>(log_floors[static_cast<std::size_t>(floor)]));
}

bool DeviceMeasurements::any() const noexcept {
  int points = measured_points(log_floors);
  for (const CostGrid& grid : grids) points += grid.measured();
  for (const CostCurve& curve : dma) points += measured_points(curve.log_seconds);
  for (const CostCurve& curve : contiguous) points += measured_points(curve.log_seconds);
  return points > 0;
}

DeviceCosts DeviceCosts::from(DeviceMeasurements measured) {
  const bool usable = measured.any() && (!measured.stand_in || Settings::get().flag("BESTRIDE_FORCE=stand_in"));
  DeviceCosts costs = built_in();
  if (usable) {
    costs.filled_ = measured;
    complete(costs.filled_, built_in().filled_);
    costs.calibrated_ = true;
    for (int d = 0; d < device_direction_count; ++d) {
      const auto direction = static_cast<Direction>(d);
      costs.bulk_from_[static_cast<std::size_t>(d)] =
          min_bulk(measured[{DeviceWork::bulk, direction}], measured[{DeviceWork::kernel, direction}]);
    }
    costs.finish();
  }
  costs.measured_ = measured;
  return costs;
}

void DeviceCosts::finish() noexcept {
  launch_ = filled_.seconds(DeviceFloor::launch);
  sync_ = filled_.seconds(DeviceFloor::sync);
  chunk_ = filled_.seconds(DeviceFloor::chunk);
  for (std::size_t d = 0; d < device_direction_count; ++d) {
    dma_floor_[d] = std::exp2(static_cast<double>(filled_.dma[d].log_seconds[0]));
    for (int i = 0; i < chunk_count; ++i)
      dma_of_chunk_[d][static_cast<std::size_t>(i)] = filled_.dma[d].at(static_cast<double>(chunk_at(i)));
  }
}

bool DeviceCosts::graph_is_faster(int operations) const noexcept {
  if (!calibrated_) return false;
  const auto seconds = [&](DeviceFloor one, DeviceFloor many) noexcept {
    const double first = measured_.seconds(one);
    return first + (measured_.seconds(many) - first) * (operations - 1) / many_copies;
  };
  // If one is not measured (NaN), the result is false.
  return seconds(DeviceFloor::graph, DeviceFloor::graph_many) <
         0.95 * seconds(DeviceFloor::again, DeviceFloor::again_many);
}

double DeviceCosts::kernel_seconds(DeviceWork work, Direction direction, const Shape& shape, const Position& position,
                                   const AxisPosition& bytes) const noexcept {
  if (shape.kind == Shape::Class::list)
    return std::exp2(filled_[{work, direction, DeviceWalk::listed}].log_at(bytes, position.block));
  float log = filled_[{work, direction, DeviceWalk::dense}].log_at(bytes, position.block);
  if (position.wide > 0)
    log += (filled_[{work, direction, DeviceWalk::wide}].log_at(bytes, position.block) - log) * position.wide;
  return std::exp2(log);
}

DevicePrediction DeviceCosts::predict(const Shape& shape, Direction direction, double host_message,
                                      double device_message) const noexcept {
  using enum cuda::TransferMethod;
  const auto d = static_cast<std::size_t>(direction);
  const auto bytes = static_cast<double>(shape.bytes);
  const bool contiguous = shape.kind == Shape::Class::contiguous;
  const Position position = position_of(shape);
  const auto kernel_at = [&](DeviceWork work, const AxisPosition& at) noexcept {
    return kernel_seconds(work, direction, shape, position, at);
  };

  DevicePrediction result;
  result.chunk = std::max(chunk_at(0), shape.bytes);  // one chunk, which is the same as `staged`, unless several are
                                                      // faster
  const auto set = [&](cuda::TransferMethod method, double seconds) noexcept {
    result.seconds[static_cast<std::size_t>(method)] = seconds;
  };
  const double dma = filled_.dma[d].at(bytes);
  const double kernel = kernel_at(DeviceWork::kernel, position.bytes);
  // Contiguous bytes use the copy engine with every method (kernels/cuda/transfer/flow.cpp).
  const double staged_alone = contiguous ? dma : std::max(dma, kernel + dma - sync_);
  set(staged, staged_alone + host_message);
  set(oneshot, (contiguous ? dma : kernel_at(DeviceWork::oneshot, position.bytes)) + host_message);
  set(device, kernel + device_message);

  // The cost of a row beyond its bytes is constant; blocks longer than the longest measured one give fewer rows.
  const double rows = std::exp2(filled_[{DeviceWork::copy, direction}].log_at(position.bytes, position.block));
  const double longest = static_cast<double>(block_lengths.back());
  const double fewer = std::min(1.0, longest / static_cast<double>(shape.block_bytes));
  set(copy_engine, (contiguous ? dma : dma + std::max(0.0, rows - dma) * fewer) + host_message);

  // The first chunk passes both stages; after that the slower stage, or enqueueing, determines the pace. Larger chunks
  // take longer to fill the pipeline and reduce the cost of chunks. Once larger chunks are slower, the following ones
  // are, too.
  double least = staged_alone, before = std::numeric_limits<double>::infinity();
  for (int i = 0; i < chunk_count && chunk_at(i) < shape.bytes && !contiguous; ++i) {
    const double copied = dma_of_chunk_[d][static_cast<std::size_t>(i)];
    const double packed =
        kernel_at(DeviceWork::kernel, on_bytes_axis_log(log_first_chunk + static_cast<float>(i) + position.log_scale));
    const double first = std::max(copied, packed + copied - sync_);
    const double pace = std::max({packed - launch_, copied - dma_floor_[d], chunk_});
    const double all = first + (bytes / static_cast<double>(chunk_at(i)) - 1) * pace;
    if (all > before) break;
    before = all;
    if (all < least) least = all, result.chunk = chunk_at(i);
  }
  set(pipelined, least + host_message);
  return result;
}

}  // namespace bestride::inline perfmodel
