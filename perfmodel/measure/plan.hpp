// SPDX-License-Identifier: Apache-2.0
#pragma once
// What calibration measures and in which order: coarse first, so that whenever time runs out, what was not reached lies between
// points that were. Knows no MPI.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perfmodel/profile.hpp"

namespace bestride {

/// One point of the plan: all engines and leaves that exist there are measured together, interleaved, so that a burst of noise
/// falls on all of them.
struct Point {
  Lane lane = Lane::pack;
  Shape::Class kind = Shape::Class::vector;  ///< contiguous: a point of the lane's curve
  Spread spread = Spread::dense;
  int bytes_index = 0;  ///< of contiguous points on the curve's axis, of others on the grids'
  int block_index = 0;
  int level = 0;  ///< 0: coarsest

  std::int64_t bytes() const noexcept { return kind == Shape::Class::contiguous ? curve_bytes_at(bytes_index) : bytes_at(bytes_index); }
  std::int64_t block() const noexcept { return block_lengths[static_cast<std::size_t>(block_index)]; }
  /// One word: "send/node.vector.dense.5.1".
  std::string id() const;
  bool operator==(const Point&) const = default;
};

/// One thing measured at a point.
struct Series {
  Engine engine = Engine::kernel;
  Leaf leaf = Leaf::eight;
};
/// In the order they are interleaved. Empty for contiguous points.
std::vector<Series> series_at(const Point& point);

/// From the first to the last measured block.
std::int64_t footprint_of(const Point& point);
/// Distance from a block's start to the next one's, on average.
std::int64_t jump_of(Spread spread, std::int64_t block) noexcept;

/// Levels of the plan; `--quick` stops after the first two.
inline constexpr int level_count = 5;
inline constexpr int quick_levels = 2;

struct PlanOptions {
  bool quick = false;
  bool messages = true;        ///< false: no point at all (only the GPU is measured)
  std::vector<CallKind> only{};  ///< empty: all
  bool network = false;        ///< the two ranks are on different hosts: their lane is `network`, not `node`
};
std::vector<Point> make_plan(const PlanOptions& options);

}  // namespace bestride
