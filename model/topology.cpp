// SPDX-License-Identifier: Apache-2.0
#include "model/topology.hpp"

#include <algorithm>
#include <unordered_map>

namespace bestride {

Topology::Topology(std::span<const int> identities) : node_(identities.size()), local_(identities.size()), by_node_(identities.size()) {
  std::unordered_map<int, int> numbers;
  std::vector<int> members;
  for (std::size_t rank = 0; rank < identities.size(); ++rank) {
    const int node = numbers.try_emplace(identities[rank], static_cast<int>(numbers.size())).first->second;
    if (static_cast<std::size_t>(node) == members.size()) members.push_back(0);
    node_[rank] = node;
    local_[rank] = members[static_cast<std::size_t>(node)]++;
  }
  first_.resize(members.size() + 1);
  for (std::size_t node = 0; node < members.size(); ++node) first_[node + 1] = first_[node] + members[node];
  for (std::size_t rank = 0; rank < identities.size(); ++rank)
    by_node_[static_cast<std::size_t>(first_[static_cast<std::size_t>(node_[rank])] + local_[rank])] = static_cast<int>(rank);
  if (!members.empty()) {
    most_ = *std::max_element(members.begin(), members.end());
    least_ = *std::min_element(members.begin(), members.end());
  }
}

}  // namespace bestride
