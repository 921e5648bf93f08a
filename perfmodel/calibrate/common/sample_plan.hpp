// SPDX-License-Identifier: Apache-2.0
#pragma once
// What calibration measures, and in which order: coarse points first, so that at any time limit the missing points lie
// between measured ones. Does not use MPI.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {

/// One point of the plan. All engines and leaves that exist at the point are measured together, interleaved, so that a
/// burst of noise affects all of them.
struct Point {
  CallClass call_class = CallClass::pack;
  Shape::Class kind = Shape::Class::vector;  ///< contiguous: a point of the call_class's curve
  Spread spread = Spread::dense;
  int bytes_index = 0;  ///< on the curve's axis for contiguous points, else on the grids'
  int block_index = 0;
  int level = 0;  ///< 0: coarsest

  std::int64_t bytes() const noexcept {
    return kind == Shape::Class::contiguous ? curve_bytes_at(bytes_index) : bytes_at(bytes_index);
  }
  std::int64_t block() const noexcept { return block_lengths[static_cast<std::size_t>(block_index)]; }
  /// One word: "send/node.vector.dense.5.1".
  std::string id() const;
  /// In words: "send/node, vector, 65536 B in blocks of 8 B".
  std::string text() const;
  bool operator==(const Point&) const = default;
};

/// One quantity that is measured at a point.
struct Series {
  Engine engine = Engine::kernel;
  Leaf leaf = Leaf::eight;
};
/// The quantities that are measured at a point, in the order in which they are interleaved. Empty for contiguous
/// points.
std::vector<Series> series_at(const Point& point);

/// Bytes from the start of the first to the end of the last measured block.
std::int64_t footprint_of(const Point& point);
/// Average distance from the start of a block to the start of the next.
std::int64_t jump_of(Spread spread, std::int64_t block) noexcept;

/// The density of the points.
enum class Depth : std::uint8_t { quick, standard, thorough };

/// Number of levels of the plan: of all of it, and of the shallower depths.
inline constexpr int level_count = 5;
inline constexpr int standard_levels = 4;
inline constexpr int quick_levels = 2;

struct PlanOptions {
  Depth depth = Depth::thorough;
  bool messages = true;          ///< false: the plan is empty (only the GPU is measured)
  std::vector<CallKind> only{};  ///< empty: all
  bool network = false;  ///< the two ranks are on different hosts; the call classes are those of `network` instead of
                         ///< `node`
  std::optional<Distance> near{};  ///< only contiguous messages between ranks at this near distance
};
std::vector<Point> make_plan(const PlanOptions& options);

}  // namespace bestride::inline perfmodel
