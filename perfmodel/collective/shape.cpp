// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/shape.hpp"

#include <algorithm>
#include <array>

namespace bestride::inline perfmodel {
namespace {

constexpr std::array<std::string_view, collective_count> names{
    "allgather", "allgatherv", "broadcast", "reduce_scatter", "allreduce", "reduce", "gather", "scatter", "alltoall"};

}  // namespace

std::string_view name(Collective collective) noexcept { return names[static_cast<std::size_t>(collective)]; }

bool parse(std::string_view text, Collective* collective) noexcept {
  const auto at = std::find(names.begin(), names.end(), text);
  if (at == names.end()) return false;
  *collective = static_cast<Collective>(at - names.begin());
  return true;
}

CollectiveShape shape_of(Collective what, std::int64_t bytes, bool blocking, const Topology& topology) noexcept {
  CollectiveShape shape{.what = what,
                        .bytes = bytes,
                        .nodes = std::max(1, topology.nodes()),
                        .ranks = std::max(1, topology.ranks()),
                        .max_ranks_per_node = std::max(1, topology.max_ranks_per_node()),
                        .min_ranks_per_node = std::max(1, topology.min_ranks_per_node()),
                        .ring_entries = 1,
                        .blocking = blocking};
  for (int node = 0; node < topology.nodes(); ++node) {
    int entries = 0;
    for (int rank : topology.ranks_on(node))
      entries += topology.node_of(rank > 0 ? rank - 1 : topology.ranks() - 1) != node;
    shape.ring_entries = std::max(shape.ring_entries, entries);
  }
  return shape;
}

}  // namespace bestride::inline perfmodel
