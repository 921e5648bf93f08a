// SPDX-License-Identifier: Apache-2.0
#pragma once
// Topology: which ranks of a communicator share a core, a NUMA domain, a node, a group of nodes.
//
// Ranks are those of the communicator it was made for. Each level is a Partition, and each lies within the next: ranks on one
// core are in one domain, ranks in one domain on one node, ranks on one node in one group. Nodes are numbered by their lowest
// rank, and a node's ranks stand in ascending order, so that all members of a communicator number alike without asking each other.
// Immutable; safe to read from any thread.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/partition.hpp"

namespace bestride {

/// Where one rank runs. Numbers are names: equal means the same, any value; unknown is the same name for all.
struct RankPlace {
  static constexpr int unknown = -1;
  int node = unknown;   ///< what shares memory
  int group = unknown;  ///< of nodes near each other: a leaf switch, a chassis, a cell; what a node's lowest rank says holds for all on it
  int domain = unknown; ///< NUMA domain, numbered on its node; unknown: not bound to one
  int core = unknown;   ///< numbered on its node; unknown: not bound to one
  bool operator==(const RankPlace&) const = default;
};

/// How ranks are dealt to nodes.
enum class Placement : std::uint8_t {
  block,      ///< each node holds consecutive ranks; also one node, and one rank a node
  cyclic,     ///< rank r is on node r mod nodes
  irregular,  ///< anything else
};

class Topology {
 public:
  Topology() = default;
  /// `identities[rank]` is equal for ranks on one node, of any value otherwise. All nodes are in one group, of cores and domains nothing
  /// is known. May throw std::bad_alloc.
  explicit Topology(std::span<const int> identities);
  /// Nodes whose group is unknown form one group; so do, on each node, ranks whose domain is unknown one domain. A rank whose core is
  /// unknown is taken to have one to itself. May throw std::bad_alloc.
  explicit Topology(std::span<const RankPlace> places);

  /// The topology of a communicator whose rank i is rank `ranks[i]` of this one: no communication, any order. Nothing if one of them is
  /// not in this one (a process that was spawned, MPI_UNDEFINED). May throw std::bad_alloc.
  std::optional<Topology> restricted(std::span<const int> ranks) const;

  int ranks() const noexcept { return nodes_.ranks(); }
  int nodes() const noexcept { return nodes_.parts(); }
  /// 0 .. nodes()-1.
  int node_of(int rank) const noexcept { return nodes_.part_of(rank); }
  /// The rank's place among the ranks of its node: 0 .. ranks_on(node).size()-1.
  int local_rank_of(int rank) const noexcept { return nodes_.place_of(rank); }
  /// Ascending.
  std::span<const int> ranks_on(int node) const noexcept { return nodes_.members(node); }
  /// Ranks on the fullest and on the emptiest node.
  int most_on_a_node() const noexcept { return nodes_.largest(); }
  int least_on_a_node() const noexcept { return nodes_.smallest(); }
  Placement placement() const noexcept { return placement_; }

  int groups() const noexcept { return node_groups_.parts(); }
  /// 0 .. groups()-1, numbered by their lowest node.
  int group_of(int node) const noexcept { return node_groups_.part_of(node); }
  /// Ascending.
  std::span<const int> nodes_in(int group) const noexcept { return node_groups_.members(group); }

  /// The levels as partitions of the ranks. domains() has at least as many parts as there are nodes, cores() as there are domains.
  const Partition& cores() const noexcept { return cores_; }
  const Partition& domains() const noexcept { return domains_; }
  const Partition& by_node() const noexcept { return nodes_; }

 private:
  Partition cores_;
  Partition domains_;
  Partition nodes_;
  Partition node_groups_;  ///< its "ranks" are nodes
  Placement placement_ = Placement::block;
};

}  // namespace bestride
