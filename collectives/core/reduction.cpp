// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/reduction.hpp"

#include <algorithm>
#include <bit>

namespace bestride::inline collectives {

ReductionTree::ReductionTree(Form form, int ranks) noexcept
    : form_(form),
      pairs_(form == Form::paired ? ranks - static_cast<int>(std::bit_floor(static_cast<unsigned>(ranks))) : 0) {}

int ReductionTree::cut(int first, int last) const noexcept {
  // A tree over the values that are left after the pairs, which are the ranks themselves if there are no pairs.
  const auto value_of = [this](int rank) { return rank < 2 * pairs_ ? rank / 2 : rank - pairs_; };
  const int values = value_of(last) - value_of(first);
  if (values < 2) return first + 1;
  const int middle = value_of(first) + static_cast<int>(std::bit_floor(static_cast<unsigned>(values - 1)));
  return middle < pairs_ ? 2 * middle : middle + pairs_;
}

ReductionOrder::ReductionOrder(const Topology& topology, const ReductionTree& tree) : tree_(tree) {
  std::vector<std::vector<Subtree>> by_node(static_cast<std::size_t>(topology.nodes()));
  if (tree.ordered())
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

void ReductionOrder::add(const Topology& topology, int first, int last, std::vector<std::vector<Subtree>>& by_node) {
  const int node = topology.node_of(first);
  bool whole = true;
  for (int rank = first + 1; whole && rank < last; ++rank) whole = topology.node_of(rank) == node;
  if (whole) {
    by_node[static_cast<std::size_t>(node)].push_back({first, last, node});
    return;
  }
  const int middle = tree_.cut(first, last);
  add(topology, first, middle, by_node);
  add(topology, middle, last, by_node);
}

}  // namespace bestride::inline collectives
