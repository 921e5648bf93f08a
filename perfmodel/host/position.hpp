// SPDX-License-Identifier: Apache-2.0
#pragma once
// The position of a shape in the grids.
#include "perfmodel/host/cost_grid.hpp"
#include "perfmodel/host/shape.hpp"

namespace bestride::inline perfmodel {

/// Blocks at this distance or more count as wide apart.
inline constexpr std::int64_t wide_jump = 2048;

/// Messages between ranks on one node with up to this many bytes are sent eagerly. A longer one of a datatype with gaps
/// takes up to 14 times as long (8-byte blocks, MPICH 4.0.2 over UCX: 8192 bytes 3.2 us, 8256 bytes 44 us).
inline constexpr std::int64_t eager_bytes = 8192;

struct Position {
  AxisPosition bytes;
  AxisPosition block;
  float wide = 0;       ///< weight of the wide grid, 0 to 1
  float log_scale = 0;  ///< bytes are multiplied by 2 to this power before the look-up: a block of one byte costs as
                        ///< much as one of four
};

Position position_of(const Shape& shape) noexcept;

}  // namespace bestride::inline perfmodel
