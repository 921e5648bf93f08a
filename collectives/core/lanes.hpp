// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lanes: how the bytes that one node sends to another are divided among its ranks.
//
// There are as many lanes as the largest node has ranks. A node vector is cut into one slice per lane; their lengths
// differ by one unit at most. On each node one rank carries a lane. On a node with as many ranks as lanes, rank l
// carries lane l. So slice l of every node goes from rail l to rail l, and every rank moves the same amount.
#include <algorithm>
#include <cstdint>

#include "model/topology.hpp"

namespace bestride::inline collectives {

struct Range {
  std::int64_t first = 0, last = 0;
  std::int64_t length() const noexcept { return last - first; }
  bool operator==(const Range&) const = default;
};

/// Part `index` of [0, bytes) in `parts` parts. Parts are cut at multiples of `unit`, which divides bytes.
constexpr Range part_of(std::int64_t bytes, int parts, int index, std::int64_t unit = 1) noexcept {
  const std::int64_t units = bytes / unit, each = units / parts, more = units % parts;
  const auto begin = [&](std::int64_t i) { return (each * i + std::min(i, more)) * unit; };
  return {begin(index), begin(index + 1)};
}

/// Piece `index` of a range that is cut every `chunk` bytes; empty beyond its end.
constexpr Range piece_of(Range range, std::int64_t index, std::int64_t chunk) noexcept {
  const std::int64_t first = std::min(range.last, range.first + index * chunk);
  return {first, std::min(range.last, first + chunk)};
}
constexpr std::int64_t pieces_in(std::int64_t bytes, std::int64_t chunk) noexcept {
  return (bytes + chunk - 1) / chunk;
}

/// The lanes that a node's local rank carries: [first, last).
struct Lanes {
  int first = 0, last = 0;
};
constexpr Lanes lanes_of(int local_rank, int local_ranks, int lanes) noexcept {
  const auto begin = [&](int l) { return (l * lanes + local_ranks - 1) / local_ranks; };
  return {begin(local_rank), begin(local_rank + 1)};
}
constexpr int carrier_of(int lane, int local_ranks, int lanes) noexcept { return lane * local_ranks / lanes; }

/// The rank of the communicator that carries `lane` on `node`.
inline int carrier(const Topology& topology, int node, int lane) noexcept {
  const auto ranks = topology.ranks_on(node);
  return ranks[static_cast<std::size_t>(
      carrier_of(lane, static_cast<int>(ranks.size()), topology.max_ranks_per_node()))];
}

}  // namespace bestride::inline collectives
