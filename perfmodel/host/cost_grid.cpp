// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/host/cost_grid.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace bestride::inline perfmodel {
namespace {

constexpr float log_factor = 2;  ///< log2 of the step of the bytes axis

/// Fills the NaN entries of line[0..n): between measured ones by interpolation over x, outside by the nearest one plus
/// slope * distance.
bool fill_line(float* line, const float* x, int n, float slope_above) noexcept {
  int before = -1;
  for (int i = 0; i < n; ++i) {
    if (std::isnan(line[i])) continue;
    for (int k = before + 1; k < i; ++k)
      line[k] =
          before < 0 ? line[i] : line[before] + (line[i] - line[before]) * (x[k] - x[before]) / (x[i] - x[before]);
    before = i;
  }
  if (before < 0) return false;
  for (int k = before + 1; k < n; ++k) line[k] = line[before] + slope_above * (x[k] - x[before]);
  return true;
}

std::array<float, bytes_points> bytes_axis() noexcept {
  std::array<float, bytes_points> x;
  for (int i = 0; i < bytes_points; ++i) x[i] = log_factor * static_cast<float>(i);
  return x;
}

std::array<float, block_points> block_axis() noexcept {
  std::array<float, block_points> x;
  for (int i = 0; i < block_points; ++i) x[i] = std::log2(static_cast<float>(block_lengths[i]));
  return x;
}

/// For an axis of `points` points: the first at 64 bytes, with `step` powers of two between points.
AxisPosition on_axis(float log2_bytes, int points, float step) noexcept {
  const float x = (log2_bytes - 6) / step;
  const float last = static_cast<float>(points - 1);
  if (!(x > 0)) return {0, 0, 0};
  if (x >= last) return {points - 2, 1, (x - last) * step};
  const int index = static_cast<int>(x);
  return {index, x - static_cast<float>(index), 0};
}

}  // namespace

AxisPosition on_bytes_axis_log(float log2_bytes) noexcept { return on_axis(log2_bytes, bytes_points, log_factor); }

AxisPosition on_bytes_axis(double bytes) noexcept { return on_bytes_axis_log(std::log2(static_cast<float>(bytes))); }

AxisPosition on_curve_axis(double bytes) noexcept {
  constexpr float a_little = 0.022367813f;  // log2(65/64)
  const float x = std::log2(static_cast<float>(bytes)) - 6;
  if (!(x > 0)) return {0, 0, 0};
  const int power = std::min(static_cast<int>(x), curve_points / 2 - 1);
  const float past = x - static_cast<float>(power);
  if (2 * power == curve_points - 2 && past >= a_little) return {curve_points - 2, 1, past - a_little};
  if (past < a_little) return {2 * power, past / a_little, 0};
  return {2 * power + 1, (past - a_little) / (1 - a_little), 0};
}

AxisPosition on_block_axis(double block) noexcept {
  if (!(block > static_cast<double>(block_lengths.front()))) return {0, 0, 0};
  if (block >= static_cast<double>(block_lengths.back())) return {block_points - 2, 1, 0};
  int index = 0;
  while (block >= static_cast<double>(block_lengths[index + 1])) ++index;
  const float from = static_cast<float>(block_lengths[index]);
  const float step = index < 4 ? 1 : 2;
  return {index, std::log2(static_cast<float>(block) / from) / step, 0};
}

float CostCurve::log_at(const AxisPosition& at) const noexcept {
  const float a = log_seconds[at.index];
  return a + (log_seconds[at.index + 1] - a) * at.weight + at.beyond;
}

double CostCurve::at(double bytes) const noexcept { return std::exp2(log_at(on_curve_axis(bytes))); }

void CostCurve::set(int index, double seconds) noexcept { log_seconds[index] = static_cast<float>(std::log2(seconds)); }

float CostGrid::log_at(const AxisPosition& bytes, const AxisPosition& block) const noexcept {
  const auto& low = log_seconds[bytes.index];
  const auto& high = log_seconds[bytes.index + 1];
  const float a = low[block.index] + (low[block.index + 1] - low[block.index]) * block.weight;
  const float b = high[block.index] + (high[block.index + 1] - high[block.index]) * block.weight;
  return a + (b - a) * bytes.weight + bytes.beyond;
}

double CostGrid::at(double bytes, double block) const noexcept {
  return std::exp2(log_at(on_bytes_axis(bytes), on_block_axis(block)));
}

void CostGrid::set(int bytes_index, int block_index, double seconds) noexcept {
  log_seconds[bytes_index][block_index] = static_cast<float>(std::log2(seconds));
}

int CostGrid::measured() const noexcept {
  int points = 0;
  for (const auto& row : log_seconds)
    for (float value : row) points += !std::isnan(value);
  return points;
}

bool fill(CostGrid* grid, const CostGrid* like) noexcept {
  if (grid->measured() == 0) {
    if (!like) return false;
    *grid = *like;
    return true;
  }
  const auto bytes = bytes_axis();
  const auto block = block_axis();
  if (like)
    for (int i = 0; i < bytes_points; ++i)
      for (int k = 0; k < block_points; ++k) grid->log_seconds[i][k] -= like->log_seconds[i][k];
  for (int k = 0; k < block_points; ++k) {
    std::array<float, bytes_points> column;
    for (int i = 0; i < bytes_points; ++i) column[i] = grid->log_seconds[i][k];
    if (!fill_line(column.data(), bytes.data(), bytes_points, like ? 0.0f : 1.0f)) continue;
    for (int i = 0; i < bytes_points; ++i) grid->log_seconds[i][k] = column[i];
  }
  for (auto& row : grid->log_seconds) fill_line(row.data(), block.data(), block_points, 0);
  if (like)
    for (int i = 0; i < bytes_points; ++i)
      for (int k = 0; k < block_points; ++k) grid->log_seconds[i][k] += like->log_seconds[i][k];
  return true;
}

bool fill(CostCurve* curve) noexcept {
  std::array<float, curve_points> x;
  for (int i = 0; i < curve_points; ++i) x[i] = std::log2(static_cast<float>(curve_bytes_at(i)));
  return fill_line(curve->log_seconds.data(), x.data(), curve_points, 1);
}

void smooth(CostGrid* grid) noexcept {
  for (int k = 0; k < block_points; ++k) {
    float least = std::numeric_limits<float>::infinity();
    for (int i = bytes_points - 1; i >= 0; --i)
      if (float& value = grid->log_seconds[i][k]; !std::isnan(value)) value = least = std::min(least, value);
  }
}

void smooth(CostCurve* curve) noexcept {
  float least = std::numeric_limits<float>::infinity();
  for (int i = curve_points - 1; i >= 0; --i)
    if (float& value = curve->log_seconds[i]; !std::isnan(value)) value = least = std::min(least, value);
}

}  // namespace bestride::inline perfmodel
