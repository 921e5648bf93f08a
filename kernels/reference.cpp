// SPDX-License-Identifier: Apache-2.0
// The reference for all kernels: one memcpy per block, in the order of the type map.
#include <algorithm>
#include <cstring>

#include "datatype/build.hpp"
#include "kernels/program.hpp"

namespace bestride::inline kernels {

template <Direction direction>
void run_reference(const Node& node, Byte* packed, Byte* user, std::int64_t first, std::int64_t last) noexcept {
  std::int64_t start = 0;
  for_each_block(node, 0, [&](std::int64_t offset, std::int64_t length) {
    const std::int64_t from = std::max(first, start);
    const std::int64_t to = std::min(last, start + length);
    if (from < to) {
      Byte* at = user + offset + (from - start);
      if constexpr (direction == Direction::pack)
        std::memcpy(packed + (from - first), at, static_cast<std::size_t>(to - from));
      else
        std::memcpy(at, packed + (from - first), static_cast<std::size_t>(to - from));
    }
    start += length;
    return start < last;
  });
}

template void run_reference<Direction::pack>(const Node&, Byte*, Byte*, std::int64_t, std::int64_t) noexcept;
template void run_reference<Direction::unpack>(const Node&, Byte*, Byte*, std::int64_t, std::int64_t) noexcept;

}  // namespace bestride::inline kernels
