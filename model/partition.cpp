// SPDX-License-Identifier: Apache-2.0
#include "model/partition.hpp"

#include <algorithm>
#include <unordered_map>

namespace bestride::inline model {

Partition::Partition(std::span<const int> identities)
    : part_(identities.size()), place_(identities.size()), by_part_(identities.size()) {
  std::unordered_map<int, int> numbers;
  std::vector<int> sizes;
  for (std::size_t rank = 0; rank < identities.size(); ++rank) {
    const int part = numbers.try_emplace(identities[rank], static_cast<int>(numbers.size())).first->second;
    if (static_cast<std::size_t>(part) == sizes.size()) sizes.push_back(0);
    part_[rank] = part;
    place_[rank] = sizes[static_cast<std::size_t>(part)]++;
  }
  first_.resize(sizes.size() + 1);
  for (std::size_t part = 0; part < sizes.size(); ++part) first_[part + 1] = first_[part] + sizes[part];
  for (std::size_t rank = 0; rank < identities.size(); ++rank)
    by_part_[static_cast<std::size_t>(first_[static_cast<std::size_t>(part_[rank])] + place_[rank])] =
        static_cast<int>(rank);
  if (!sizes.empty()) {
    largest_ = *std::max_element(sizes.begin(), sizes.end());
    smallest_ = *std::min_element(sizes.begin(), sizes.end());
  }
}

}  // namespace bestride::inline model
