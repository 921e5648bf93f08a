// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a shape lies in the grids.
#include "perfmodel/cost_grid.hpp"
#include "perfmodel/shape.hpp"

namespace bestride {

/// From this distance between blocks on they count as wide apart.
inline constexpr std::int64_t wide_jump = 2048;

struct Position {
  AxisPosition bytes;
  AxisPosition block;
  float wide = 0;   ///< weight of the wide grid, 0 to 1
  float log_scale = 0;  ///< bytes are looked up times 2 to this: a block of one byte costs what one of four does
};

Position position_of(const Shape& shape) noexcept;

}  // namespace bestride
