// SPDX-License-Identifier: Apache-2.0
#pragma once
// Topology: which ranks of a communicator share a node.
//
// Ranks are those of the communicator it was made for; nodes are numbered by their lowest rank, and a node's ranks stand in ascending
// order, so that all members of a communicator number alike without asking each other. Immutable; safe to read from any thread.
#include <span>
#include <vector>

namespace bestride {

class Topology {
 public:
  Topology() = default;
  /// `identities[rank]` is equal for ranks on one node, of any value otherwise. May throw std::bad_alloc.
  explicit Topology(std::span<const int> identities);

  int ranks() const noexcept { return static_cast<int>(node_.size()); }
  int nodes() const noexcept { return static_cast<int>(first_.size()) - 1; }
  /// 0 .. nodes()-1.
  int node_of(int rank) const noexcept { return node_[static_cast<std::size_t>(rank)]; }
  /// The rank's place among the ranks of its node: 0 .. ranks_on(node).size()-1.
  int local_rank_of(int rank) const noexcept { return local_[static_cast<std::size_t>(rank)]; }
  /// Ascending.
  std::span<const int> ranks_on(int node) const noexcept {
    const std::size_t begin = static_cast<std::size_t>(first_[static_cast<std::size_t>(node)]);
    return {by_node_.data() + begin, static_cast<std::size_t>(first_[static_cast<std::size_t>(node) + 1]) - begin};
  }
  /// Ranks on the fullest and on the emptiest node.
  int most_on_a_node() const noexcept { return most_; }
  int least_on_a_node() const noexcept { return least_; }

 private:
  std::vector<int> node_;     ///< by rank
  std::vector<int> local_;    ///< by rank
  std::vector<int> by_node_;  ///< ranks, node after node
  std::vector<int> first_{0}; ///< where a node's ranks begin in by_node_, and the end
  int most_ = 0, least_ = 0;
};

}  // namespace bestride
