// SPDX-License-Identifier: Apache-2.0
#include "model/topology.hpp"

#include <map>
#include <utility>

namespace bestride::inline model {
namespace {

std::vector<RankLocation> on_nodes(std::span<const int> identities) {
  std::vector<RankLocation> places(identities.size());
  for (std::size_t rank = 0; rank < identities.size(); ++rank) places[rank].node = identities[rank];
  return places;
}

Partition nodes_of(std::span<const RankLocation> places) {
  std::vector<int> identities;
  identities.reserve(places.size());
  for (const RankLocation& place : places) identities.push_back(place.node);
  return Partition(identities);
}

/// Splits the parts of `coarse` by `names[rank]`. Ranks with an unknown name stay together or, if `alone`, form a part
/// each.
Partition split(const Partition& coarse, const std::vector<int>& names, bool alone) {
  std::map<std::pair<int, int>, int> numbers;
  std::vector<int> identities(names.size());
  int next = 0;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    if (alone && names[rank] == RankLocation::unknown) {
      identities[rank] = next++;
      continue;
    }
    const auto [known, made] = numbers.try_emplace({coarse.part_of(static_cast<int>(rank)), names[rank]}, next);
    next += made;
    identities[rank] = known->second;
  }
  return Partition(identities);
}

Placement placement_of(const Partition& nodes) {
  bool block = true;
  bool cyclic = true;
  for (int rank = 0; rank < nodes.ranks(); ++rank) {
    // Nodes are numbered by their lowest rank, so consecutive ranks are on ascending nodes.
    block = block && (rank == 0 || nodes.part_of(rank) >= nodes.part_of(rank - 1));
    cyclic = cyclic && nodes.part_of(rank) == rank % nodes.parts();
  }
  return block ? Placement::block : cyclic ? Placement::cyclic : Placement::irregular;
}

}  // namespace

Topology::Topology(std::span<const int> identities) : Topology(std::span<const RankLocation>(on_nodes(identities))) {}

Topology::Topology(std::span<const RankLocation> places) : nodes_(nodes_of(places)) {
  std::vector<int> names(places.size());
  for (std::size_t rank = 0; rank < places.size(); ++rank) names[rank] = places[rank].domain;
  domains_ = split(nodes_, names, false);
  for (std::size_t rank = 0; rank < places.size(); ++rank) names[rank] = places[rank].core;
  cores_ = split(domains_, names, true);
  std::vector<int> groups;
  groups.reserve(static_cast<std::size_t>(nodes_.parts()));
  for (int node = 0; node < nodes_.parts(); ++node)
    groups.push_back(places[static_cast<std::size_t>(nodes_.members(node)[0])].group);
  node_groups_ = Partition(groups);
  placement_ = placement_of(nodes_);
}

std::optional<Topology> Topology::restricted(std::span<const int> ranks) const {
  std::vector<RankLocation> places;
  places.reserve(ranks.size());
  for (const int rank : ranks) {
    if (rank < 0 || rank >= this->ranks()) return std::nullopt;
    const int node = node_of(rank);
    places.push_back({node, group_of(node), domains_.part_of(rank), cores_.part_of(rank)});
  }
  return Topology(std::span<const RankLocation>(places));
}

}  // namespace bestride::inline model
