// SPDX-License-Identifier: Apache-2.0
#pragma once
// CostGrid: seconds over packed bytes x block length, as log2, so that interpolation between the powers is a weighted sum.
//
// Costs here are sums of c * bytes, d * blocks and a floor, which are close to straight between neighbours in log-log scale.
// Alternative that lost: fitting c, d and the floor. Message engines have steps (fragment size, eager limit) that no sum of
// terms follows; a factor of 4 between points does, to a few percent.
#include <array>
#include <cstdint>

namespace bestride {

inline constexpr int bytes_points = 10;  ///< 64 B, 256 B, ... 16 MiB
inline constexpr int block_points = 8;
inline constexpr std::array<std::int64_t, block_points> block_lengths{4, 8, 16, 32, 64, 256, 1024, 4096};
constexpr std::int64_t bytes_at(int i) noexcept { return std::int64_t{64} << (2 * i); }
/// 64 B, 65 B, 128 B, 130 B, ... 16 MiB, 16.25 MiB: every power of two and a little more, because protocols change there.
inline constexpr int curve_points = 38;
constexpr std::int64_t curve_bytes_at(int i) noexcept { return (std::int64_t{64} << i / 2) * (64 + i % 2) / 64; }

/// Where a value lies on an axis: between point `index` and the next, at `weight` of the way; `beyond`: log2 of the factor by
/// which it lies past the last point.
struct AxisPosition {
  int index = 0;
  float weight = 0;
  float beyond = 0;
};
AxisPosition on_bytes_axis(double bytes) noexcept;   ///< clamped below
AxisPosition on_bytes_axis_log(float log2_bytes) noexcept;  ///< the same, of log2 of bytes
AxisPosition on_curve_axis(double bytes) noexcept;   ///< clamped below
AxisPosition on_block_axis(double block) noexcept;   ///< clamped on both ends

/// One curve over bytes, log2 of seconds, finer than a grid: a contiguous message's time leaps where the protocol changes
/// (MPICH: 0.35 us for 8192 bytes, 2.5 us for 8320). NaN: not measured.
struct CostCurve {
  CostCurve() noexcept { log_seconds.fill(unmeasured); }
  float log_at(const AxisPosition& bytes) const noexcept;
  /// Log-log linear, clamped below, proportional to bytes above.
  double at(double bytes) const noexcept;

  static constexpr float unmeasured = __builtin_nanf("");
  void set(int index, double seconds) noexcept;
  std::array<float, curve_points> log_seconds;
};

struct CostGrid {
  CostGrid() noexcept;
  float log_at(const AxisPosition& bytes, const AxisPosition& block) const noexcept;
  /// Log-log bilinear, clamped below in both and above in block length, proportional to bytes above. Allocates nothing.
  double at(double bytes, double block) const noexcept;
  void set(int bytes_index, int block_index, double seconds) noexcept;
  int measured() const noexcept;  ///< how many points are not NaN

  std::array<std::array<float, block_points>, bytes_points> log_seconds;
};

/// Fills the points that are NaN: along bytes, then across block lengths; ends are extended proportionally to bytes (above) and
/// flat (elsewhere). With `like`, a complete grid, what is interpolated is the ratio to it, so few points suffice and none
/// gives a copy. False if nothing is measured and there is no `like`.
bool fill(CostGrid* grid, const CostGrid* like = nullptr) noexcept;
bool fill(CostCurve* curve) noexcept;

/// Takes off what more bytes prove to be noise: a point never costs more than one of more bytes and the same block length.
/// Noise on a machine only adds time. Call before fill().
void smooth(CostGrid* grid) noexcept;
void smooth(CostCurve* curve) noexcept;

}  // namespace bestride
