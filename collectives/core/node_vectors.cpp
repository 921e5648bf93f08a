// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/node_vectors.hpp"

#include <algorithm>

namespace bestride::inline collectives {

std::vector<std::int64_t> bytes_of(const NodeVectors& vectors, int nodes) {
  std::vector<std::int64_t> bytes;
  for (int node = 0; node < nodes; ++node) bytes.push_back(vectors.bytes(node));
  return bytes;
}

RankBlocks::RankBlocks(const Topology& topology, const Operands& blocks)
    : topology_(topology), blocks_(blocks), begins_(static_cast<std::size_t>(topology.nodes())) {
  for (int node = 0; node < topology.nodes(); ++node) {
    auto& begins = begins_[static_cast<std::size_t>(node)];
    begins.push_back(0);
    for (const int rank : topology.ranks_on(node)) begins.push_back(begins.back() + blocks.bytes(rank));
  }
}

std::int64_t RankBlocks::bytes(int node) const noexcept { return begins_[static_cast<std::size_t>(node)].back(); }

Range RankBlocks::part(int node, int local_rank) const noexcept {
  const auto& begins = begins_[static_cast<std::size_t>(node)];
  return {begins[static_cast<std::size_t>(local_rank)], begins[static_cast<std::size_t>(local_rank) + 1]};
}

template <class Use>
void RankBlocks::each(int node, Range range, Use use) const noexcept {
  const auto& begins = begins_[static_cast<std::size_t>(node)];
  const auto ranks = topology_.ranks_on(node);
  // One past the last block that begins at or before it.
  auto next = std::upper_bound(begins.begin(), begins.end(), range.first);
  for (std::size_t i = static_cast<std::size_t>(next - begins.begin()) - 1; i < ranks.size() && begins[i] < range.last;
       ++i) {
    const Range met{std::max(range.first, begins[i]), std::min(range.last, begins[i + 1])};
    if (met.length() > 0)
      use(blocks_.of(ranks[i]), Range{met.first - begins[i], met.last - begins[i]}, met.first - range.first);
  }
}

std::byte* RankBlocks::at(int node, Range range) const noexcept {
  std::byte* start = nullptr;
  bool together = true;
  each(node, range, [&](const Operand& block, Range part, std::int64_t offset) {
    std::byte* here = block.at(part.first);
    if (offset == 0) start = here;
    together = together && here && here == start + offset;
  });
  return together ? start : nullptr;
}

void RankBlocks::read(int node, Range range, void* to) const noexcept {
  each(node, range, [to](const Operand& block, Range part, std::int64_t offset) {
    block.read(static_cast<std::byte*>(to) + offset, part.first, part.last);
  });
}

void RankBlocks::write(int node, Range range, const void* from) const noexcept {
  each(node, range, [from](const Operand& block, Range part, std::int64_t offset) {
    block.write(static_cast<const std::byte*>(from) + offset, part.first, part.last);
  });
}

Range EvenParts::part(int node, int local_rank) const noexcept {
  const int lanes = topology_.max_ranks_per_node();
  const Lanes own = lanes_of(local_rank, static_cast<int>(topology_.ranks_on(node).size()), lanes);
  return {lane(node, own.first, lanes, unit_).first, lane(node, own.last - 1, lanes, unit_).last};
}

}  // namespace bestride::inline collectives
