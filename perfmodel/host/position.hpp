// SPDX-License-Identifier: Apache-2.0
#pragma once
// The position of a shape in the grids.
#include "perfmodel/host/cost_grid.hpp"
#include "perfmodel/host/shape.hpp"

namespace bestride::inline perfmodel {

/// Blocks at this distance or more count as wide apart.
inline constexpr std::int64_t wide_jump = 2048;

struct Position {
  AxisPosition bytes;
  AxisPosition block;
  float wide = 0;       ///< weight of the wide grid, 0 to 1
  float log_scale = 0;  ///< bytes are multiplied by 2 to this power before the look-up: a block of one byte costs as
                        ///< much as one of four
};

Position position_of(const Shape& shape) noexcept;

}  // namespace bestride::inline perfmodel
