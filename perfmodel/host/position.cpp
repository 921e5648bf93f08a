// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/host/position.hpp"

#include <algorithm>
#include <cmath>

namespace bestride::inline perfmodel {

Position position_of(const Shape& shape) noexcept {
  Position position;
  const double shortest = static_cast<double>(block_lengths.front());
  double block = static_cast<double>(shape.block_bytes);
  if (block < shortest) {
    position.log_scale = std::log2(static_cast<float>(shortest / block));
    block = shortest;
  }
  position.bytes = on_bytes_axis_log(std::log2(static_cast<float>(shape.bytes)) + position.log_scale);
  position.block = on_block_axis(block);
  const float dense = 2 * static_cast<float>(block);
  if (static_cast<float>(shape.jump) > dense && dense < static_cast<float>(wide_jump))
    position.wide = std::min(
        1.0f, std::log2(static_cast<float>(shape.jump) / dense) / std::log2(static_cast<float>(wide_jump) / dense));
  return position;
}

}  // namespace bestride::inline perfmodel
