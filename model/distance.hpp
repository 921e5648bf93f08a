// SPDX-License-Identifier: Apache-2.0
#pragma once
// The distance to a peer. The cost of a message depends on it and on the number of bytes.
#include <cstdint>
#include <string_view>

namespace bestride::inline model {

enum class Distance : std::uint8_t {
  self,     ///< the rank itself
  node,     ///< another rank on this host: shared memory
  network,  ///< another host
};
inline constexpr int distance_count = 3;

constexpr std::string_view name(Distance distance) noexcept {
  constexpr std::string_view names[] = {"self", "node", "network"};
  return names[static_cast<int>(distance)];
}

}  // namespace bestride::inline model
