// SPDX-License-Identifier: Apache-2.0
#pragma once
// Estimates a link between two nodes from a few exchanges, for jobs whose profile has no measured link. It takes 1 to
// 20 ms; bestride calibrate takes seconds, and is more accurate.
#include <algorithm>
#include <cstdint>
#include <optional>

namespace bestride::inline perfmodel {

struct LinkSpeed {
  double latency_s;  ///< of a short message, in one direction
  double byte_s;     ///< per byte of a long message, one rank sending, in one direction
};

/// Messages of 32 KiB, 64 KiB, ... bytes are sent, up to this size or until one takes `long_enough_s`. A shaped link
/// may let a burst pass at full speed (token bucket), so a slow link needs more than one message.
inline constexpr std::int64_t link_probe_bytes = 256 * 1024;
inline constexpr double long_enough_s = 0.5e-3;

/// `exchange(bytes)`: sends that many bytes to the other node, waits for an empty answer, and returns the seconds that
/// this took; a negative value if it failed. Each length is sent two or three times and the shortest time counts,
/// because a rank that is descheduled can only make it longer. So the link rather looks too fast than too slow, which
/// leaves more to the MPI library. No value if an exchange failed or long messages took no longer than empty ones.
template <class Exchange>
std::optional<LinkSpeed> probe_link(Exchange&& exchange) {
  // The first exchanges open the connection.
  double empty = exchange(0);
  for (int i = 0; i < 4 && empty >= 0; ++i) empty = std::min(empty, exchange(0));
  if (empty < 0) return std::nullopt;
  for (std::int64_t bytes = 32 * 1024;; bytes *= 2) {
    const double first = exchange(bytes), second = first < 0 ? first : exchange(bytes);
    double least = std::min(first, second);
    if (least >= 0 && (std::max(first, second) > least * 1.25 || least - empty >= long_enough_s))
      least = std::min(least, exchange(bytes));
    if (least < 0) return std::nullopt;
    if (least - empty < long_enough_s && bytes < link_probe_bytes) continue;
    if (least <= empty) return std::nullopt;
    return LinkSpeed{empty / 2, (least - empty) / static_cast<double>(bytes)};
  }
}

}  // namespace bestride::inline perfmodel
