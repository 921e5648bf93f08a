// SPDX-License-Identifier: Apache-2.0
#pragma once
// CostGrid: seconds over packed bytes x block length, stored as log2, so that interpolation between powers is a
// weighted sum.
//
// The costs are sums of c * bytes, d * blocks and a constant, which are nearly linear between neighboring points on a
// log-log scale. Alternative considered: fitting c, d and the constant, which can't follow the steps of message
// protocols (fragment size, eager limit); points at a factor of 4 follow them to a few percent.
#include <array>
#include <cstddef>
#include <cstdint>

namespace bestride::inline perfmodel {

inline constexpr int bytes_points = 10;  ///< 64 B, 256 B, ... 16 MiB
inline constexpr int block_points = 8;
inline constexpr std::array<std::int64_t, block_points> block_lengths{4, 8, 16, 32, 64, 256, 1024, 4096};
constexpr std::int64_t bytes_at(int i) noexcept { return std::int64_t{64} << (2 * i); }
/// 64 B, 65 B, 128 B, 130 B, ... 16 MiB, 16.25 MiB: every power of two and a slightly larger size, because protocols
/// change there.
inline constexpr int curve_points = 38;
constexpr std::int64_t curve_bytes_at(int i) noexcept { return (std::int64_t{64} << i / 2) * (64 + i % 2) / 64; }

/// The position of a value on an axis: between point `index` and the next one, with fraction `weight`. `beyond`: log2
/// of the factor by which the value exceeds the last point.
struct AxisPosition {
  int index = 0;
  float weight = 0;
  float beyond = 0;
};
AxisPosition on_bytes_axis(double bytes) noexcept;          ///< clamped below
AxisPosition on_bytes_axis_log(float log2_bytes) noexcept;  ///< the same, for log2 of bytes
AxisPosition on_curve_axis(double bytes) noexcept;          ///< clamped below
AxisPosition on_block_axis(double block) noexcept;          ///< clamped on both ends

inline constexpr float unmeasured = __builtin_nanf("");
template <std::size_t count, class T>
consteval std::array<T, count> filled_array(const T& value) {
  std::array<T, count> values{};
  values.fill(value);
  return values;
}

/// One curve over bytes, as log2 of seconds. Finer than a grid, because the time of a contiguous message jumps where
/// the protocol changes (MPICH: 0.35 us for 8192 bytes, 2.5 us for 8320). NaN: not measured.
struct CostCurve {
  float log_at(const AxisPosition& bytes) const noexcept;
  /// Linear on a log-log scale; clamped below the first point; proportional to bytes above the last.
  double at(double bytes) const noexcept;

  void set(int index, double seconds) noexcept;
  std::array<float, curve_points> log_seconds = filled_array<curve_points>(unmeasured);
};

struct CostGrid {
  float log_at(const AxisPosition& bytes, const AxisPosition& block) const noexcept;
  /// Bilinear on a log-log scale; clamped below the first points of both axes and above the last block length;
  /// proportional to bytes above the last. Allocates nothing.
  double at(double bytes, double block) const noexcept;
  void set(int bytes_index, int block_index, double seconds) noexcept;
  int measured() const noexcept;  ///< number of points that are not NaN

  std::array<std::array<float, block_points>, bytes_points> log_seconds =
      filled_array<bytes_points>(filled_array<block_points>(unmeasured));
};

/// Fills the points that are NaN, first along bytes, then across block lengths. Beyond the measured points, values are
/// proportional to bytes (above) or constant (elsewhere). With `like`, a complete grid, the ratio to `like` is
/// interpolated, so few points suffice; without any point the result is a copy of `like`. False if nothing is measured
/// and `like` is null.
bool fill(CostGrid* grid, const CostGrid* like = nullptr) noexcept;
bool fill(CostCurve* curve) noexcept;

/// Removes noise: noise on a machine only adds time, so a point must not cost more than a point of more bytes with the
/// same block length. Call before fill().
void smooth(CostGrid* grid) noexcept;
void smooth(CostCurve* curve) noexcept;

/// The number of measured points that a curve or a dense grid needs to be used.
inline constexpr int min_points = 6;

}  // namespace bestride::inline perfmodel
