// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/reduction.hpp"

#include <algorithm>
#include <bit>

namespace bestride::inline collectives {

ReductionOrder::ReductionOrder(const Topology& topology, bool ordered) : ordered_(ordered) {
  std::vector<std::vector<Subtree>> by_node(static_cast<std::size_t>(topology.nodes()));
  if (ordered)
    add(topology, 0, topology.ranks(), by_node);
  else
    for (int node = 0; node < topology.nodes(); ++node)
      by_node[static_cast<std::size_t>(node)].push_back({0, topology.ranks(), node});
  begins_.push_back(0);
  for (const auto& subtrees : by_node) {
    subtrees_.insert(subtrees_.end(), subtrees.begin(), subtrees.end());
    begins_.push_back(static_cast<int>(subtrees_.size()));
    most_ = std::max(most_, static_cast<int>(subtrees.size()));
  }
}

int ReductionOrder::cut(int first, int last) noexcept {
  return first + static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
}

void ReductionOrder::add(const Topology& topology, int first, int last, std::vector<std::vector<Subtree>>& by_node) {
  const int node = topology.node_of(first);
  bool whole = true;
  for (int rank = first + 1; whole && rank < last; ++rank) whole = topology.node_of(rank) == node;
  if (whole) {
    by_node[static_cast<std::size_t>(node)].push_back({first, last, node});
    return;
  }
  const int middle = cut(first, last);
  add(topology, first, middle, by_node);
  add(topology, middle, last, by_node);
}

}  // namespace bestride::inline collectives
