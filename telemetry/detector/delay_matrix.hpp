// SPDX-License-Identifier: Apache-2.0
#pragma once
// Finds slow links, senders and receivers from the delays of messages.
//
// The delays of each pair are compared with those of messages of the same size between other pairs; the lower quartile
// of a pair leaves out messages that were delayed by chance. A median polish of the logarithms distinguishes a slow
// sender (its row) and a slow receiver (its column) from a slow link (one entry). Source: C4 (Dong et al., HPCA 2025)
// uses rows, columns and points; here the threshold adapts to the spread of the matrix. Alternative considered: a
// threshold for the delay per byte, which differs between machines and sizes.
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "telemetry/detector/finding.hpp"
#include "telemetry/detector/message_delays.hpp"

namespace bestride::inline telemetry {

/// The messages of one pair of nodes, which are hosts or ranks.
struct PairDelay {
  std::uint32_t from = 0, to = 0;
  double excess = 0;  ///< natural logarithm of delay / typical delay
  std::uint64_t messages = 0;
  bool exact = false;  ///< as most of its messages
  // Of the size of which the pair has most messages:
  std::uint32_t bytes = 0;
  double seconds = 0;  ///< lower quartile of the delays
  double typical = 0;  ///< median of all pairs
};

/// `node_of`: of a rank of MPI_COMM_WORLD. Pairs and sizes with few messages, and sizes of few pairs, are left out.
std::vector<PairDelay> pair_delays(std::span<const MessageDelay> delays,
                                   const std::function<std::uint32_t(std::int32_t)>& node_of);

/// A slow path between nodes, or of a node to and from all others.
struct SlowNodePath {
  PathKind kind = PathKind::link;
  std::uint32_t node = 0;   ///< the slow node; of a link the sender
  std::uint32_t other = 0;  ///< of a link the receiver
  double factor = 1;        ///< how many times the typical delay
  std::uint64_t messages = 0;
  std::uint32_t bytes = 0;
  double seconds = 0, typical = 0;  ///< delay of messages of that size, and the median of all pairs
  bool exact = true;      ///< false: messages of other pairs were completed by the same calls, and may be the slow ones
  bool own_calls = true;  ///< most messages were alone in the calls that completed them

  /// Ignores the direction.
  bool same_as(const SlowNodePath& o) const noexcept {
    return is_link(kind) == is_link(o.kind) &&
           ((node == o.node && other == o.other) || (node == o.other && other == o.node));
  }
};

/// What is slow, the most important first. `nodes`: more than any node. `least_factor`: of a slow path, more than 1.
/// O(pairs log pairs).
std::vector<SlowNodePath> find_slow_paths(std::span<const PairDelay> pairs, std::uint32_t nodes, double least_factor);

}  // namespace bestride::inline telemetry
