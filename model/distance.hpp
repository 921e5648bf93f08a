// SPDX-License-Identifier: Apache-2.0
#pragma once
// The distance to a peer. The cost of a message depends on it and on the number of bytes.
#include <cstdint>
#include <string_view>

namespace bestride::inline model {

/// In ascending order. `cache`, `domain` and `socket` need to be known for both ranks (model/processor_groups.hpp).
enum class Distance : std::uint8_t {
  self,     ///< the rank itself
  cache,    ///< a rank on this host; both run on processors that share a last-level cache
  domain,   ///< a rank on this host, on processors of the same NUMA domain
  socket,   ///< a rank on this host, on processors of the same socket
  node,     ///< another rank on this host, farther away or not bound
  network,  ///< another host
};
inline constexpr int distance_count = 6;
/// The distances between two ranks whose processors are known to be near each other.
inline constexpr Distance near_distances[] = {Distance::cache, Distance::domain, Distance::socket};

constexpr std::string_view name(Distance distance) noexcept {
  constexpr std::string_view names[] = {"self", "cache", "domain", "socket", "node", "network"};
  return names[static_cast<int>(distance)];
}

constexpr bool is_near(Distance distance) noexcept { return distance >= Distance::cache && distance < Distance::node; }

/// The distance without regard to processors: `node` for all other ranks on this host.
constexpr Distance without_processors(Distance distance) noexcept {
  return is_near(distance) ? Distance::node : distance;
}

}  // namespace bestride::inline model
