// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/pair_sizes.hpp"

#include <algorithm>

namespace bestride {

bool PairSizes::fit(const Topology& topology) noexcept {
  const std::int64_t rows = topology.most_on_a_node() + 1;
  return rows * topology.ranks() * static_cast<std::int64_t>(sizeof(std::int64_t)) <= table_bytes;
}

PairSizes::PairSizes(Hierarchy& hierarchy, std::int64_t each)
    : topology_(hierarchy.topology()),
      each_(each),
      local_ranks_(hierarchy.local_ranks()),
      table_(reinterpret_cast<std::int64_t*>(hierarchy.staging() + Hierarchy::staging_bytes - table_bytes)),
      given_(static_cast<std::size_t>(topology_.nodes() * (local_ranks_ + 1))),
      begins_(static_cast<std::size_t>(topology_.ranks())),
      coming_(static_cast<std::size_t>(topology_.nodes())) {}

void PairSizes::number() noexcept {
  for (int node = 0; node < topology_.nodes(); ++node) {
    given_[place(node, 0)] = 0;
    for (int q = 0; q < local_ranks_; ++q) {
      if (each_ >= 0) add_given(q, node, each_ * static_cast<std::int64_t>(topology_.ranks_on(node).size()));
      given_[place(node, q + 1)] += given_[place(node, q)];
    }
  }
  if (each_ < 0) {
    const int ranks = topology_.ranks();
    std::fill_n(table_, ranks, 0);
    for (int i = ranks; i < (local_ranks_ + 1) * ranks; ++i) table_[i] += table_[i - ranks];
  }
  for (int node = 0; node < topology_.nodes(); ++node) {
    std::int64_t bytes = 0;
    for (const int rank : topology_.ranks_on(node)) {
      begins_[static_cast<std::size_t>(rank)] = bytes;
      bytes += before(local_ranks_, rank);
    }
    coming_[static_cast<std::size_t>(node)] = bytes;
  }
}

}  // namespace bestride
