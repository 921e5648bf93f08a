// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/relayed_vectors.hpp"

#include <algorithm>

namespace bestride::inline collectives {

RelayedVectors::RelayedVectors(const NodeVectors& vectors, const RelayPlan& plan, int nodes)
    : vectors_(vectors), plan_(plan), begins_(static_cast<std::size_t>(nodes)) {
  for (int node = 0; node < nodes; ++node) {
    auto& begins = begins_[static_cast<std::size_t>(node)];
    begins = {0, plan.of(node).back().range.length()};
    for (const RelayedRange& relayed_range : plan.through(node))
      begins.push_back(begins.back() + relayed_range.range.length());
  }
}

RelayedVectors::Overlap RelayedVectors::overlap(int node, std::size_t index, Range range) const noexcept {
  const auto& begins = begins_[static_cast<std::size_t>(node)];
  const RelayedRange& relayed_range = index == 0 ? plan_.of(node).back() : plan_.through(node)[index - 1];
  const Range met{std::max(range.first, begins[index]), std::min(range.last, begins[index + 1])};
  const std::int64_t moved = relayed_range.range.first - begins[index];
  return {relayed_range.node, {met.first + moved, met.last + moved}, met.first - range.first};
}

void RelayedVectors::read(int node, Range range, void* to) const noexcept {
  for (std::size_t i = 0; i < relayed_ranges(node); ++i)
    if (const Overlap met = overlap(node, i, range); met.range.length() > 0)
      vectors_.read(met.node, met.range, static_cast<std::byte*>(to) + met.offset);
}

void RelayedVectors::write(int node, Range range, const void* from) const noexcept {
  for (std::size_t i = 0; i < relayed_ranges(node); ++i)
    if (const Overlap met = overlap(node, i, range); met.range.length() > 0)
      vectors_.write(met.node, met.range, static_cast<const std::byte*>(from) + met.offset);
}

}  // namespace bestride::inline collectives
