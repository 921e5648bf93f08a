// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/relays.hpp"

#include <algorithm>
#include <numeric>

namespace bestride::inline collectives {

RelayPlan::RelayPlan(std::span<const std::int64_t> bytes, std::int64_t unit, std::int64_t worth, Copies copies) {
  const auto nodes = static_cast<std::int64_t>(bytes.size());
  std::int64_t bound = 0;
  if (nodes > 2) {
    const auto [least, most] = std::minmax_element(bytes.begin(), bytes.end());
    bound = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}) - *least;
    worth = std::max(worth, bound / 64);
    even_ = *most - *least <= unit || (nodes - 1) * (*most - *least) < worth;
  }

  struct Relay {
    int node;
    std::int64_t capacity;  ///< bytes that can go through it
  };
  const std::int64_t others = (nodes - 2) * unit, relayed = copies == Copies::of_all ? others + unit : others;
  std::vector<Relay> relays;
  for (int node = 0; !even_ && node < nodes; ++node) {
    const std::int64_t spare = bound - (nodes - 1) * bytes[static_cast<std::size_t>(node)];
    if (spare > 0) relays.push_back({node, (spare + relayed - 1) / relayed * unit});
  }
  std::sort(relays.begin(), relays.end(), [](const Relay& a, const Relay& b) {
    return a.capacity != b.capacity ? a.capacity > b.capacity : a.node < b.node;
  });

  auto relay = relays.begin();
  for (int node = 0; node < nodes; ++node) {
    const std::int64_t all = bytes[static_cast<std::size_t>(node)], excess = (nodes - 1) * all - bound;
    std::int64_t begin = 0;
    begins_.push_back(by_node_.size());
    // Capacities are rounded up and the excess is rounded down, so the relays can take all of it.
    for (std::int64_t left = !even_ && excess >= worth ? excess / others * unit : 0; left > 0;) {
      const std::int64_t part = std::min(left, relay->capacity);
      by_node_.push_back({node, relay->node, 0, {begin, begin + part}});
      begin += part;
      left -= part;
      if ((relay->capacity -= part) == 0) ++relay;
    }
    by_node_.push_back({node, RelayedRange::direct, 0, {begin, all}});
  }
  begins_.push_back(by_node_.size());

  relay_begins_.assign(static_cast<std::size_t>(nodes) + 1, 0);
  for (const RelayedRange& relayed_range : by_node_)
    if (relayed_range.relay != RelayedRange::direct) ++relay_begins_[static_cast<std::size_t>(relayed_range.relay) + 1];
  std::partial_sum(relay_begins_.begin(), relay_begins_.end(), relay_begins_.begin());
  by_relay_.resize(relay_begins_.back());
  std::vector<std::size_t> next = relay_begins_;
  for (RelayedRange& relayed_range : by_node_)
    if (relayed_range.relay != RelayedRange::direct) {
      const auto relay_index = static_cast<std::size_t>(relayed_range.relay);
      relayed_range.index = static_cast<int>(next[relay_index] - relay_begins_[relay_index]);
      by_relay_[next[relay_index]++] = relayed_range;
    }
}

}  // namespace bestride::inline collectives
