// SPDX-License-Identifier: Apache-2.0
#pragma once
// Topology: which ranks of a communicator share a core, a NUMA domain, a node, a group of nodes.
//
// Ranks are those of the communicator that it was made for. Each level is a Partition and refines the next one: ranks
// on one core are in one domain, ranks in one domain are on one node, ranks on one node are in one group. Nodes are
// numbered by their lowest rank, and the ranks of a node are in ascending order, so all members of a communicator get
// the same numbers without communication. Immutable; threads may read it concurrently.
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "model/partition.hpp"

namespace bestride::inline model {

/// Where one rank runs. The numbers are only compared: equal numbers mean the same place, and `unknown` equals
/// `unknown`.
struct RankLocation {
  static constexpr int unknown = -1;
  int node = unknown;    ///< ranks that share memory
  int group = unknown;   ///< nodes close to each other: a leaf switch, a chassis, a cell; the value of a node's lowest
                         ///< rank applies to all its ranks
  int domain = unknown;  ///< NUMA domain, numbered within its node; unknown: not bound to one
  int core = unknown;    ///< numbered within its node; unknown: not bound to one
  bool operator==(const RankLocation&) const = default;
};

/// How ranks are distributed over nodes.
enum class Placement : std::uint8_t {
  block,      ///< each node has consecutive ranks; includes one node, and one rank per node
  cyclic,     ///< rank r is on node r mod nodes
  irregular,  ///< anything else
};

class Topology {
 public:
  Topology() = default;
  /// `identities[rank]` is equal for ranks on one node; the values have no other meaning. All nodes are in one group;
  /// cores and domains are unknown. May throw std::bad_alloc.
  explicit Topology(std::span<const int> identities);
  /// Nodes of unknown group form one group; ranks of unknown domain form one domain on each node. A rank of unknown
  /// core is assumed to have a core of its own. May throw std::bad_alloc.
  explicit Topology(std::span<const RankLocation> places);

  /// The topology of a communicator whose rank i is rank `ranks[i]` of this one; any order. No communication. nullopt
  /// if one of them is not in this topology (a spawned process, MPI_UNDEFINED). May throw std::bad_alloc.
  std::optional<Topology> restricted(std::span<const int> ranks) const;

  int ranks() const noexcept { return nodes_.ranks(); }
  int nodes() const noexcept { return nodes_.parts(); }
  /// 0 .. nodes()-1.
  int node_of(int rank) const noexcept { return nodes_.part_of(rank); }
  /// The position of the rank among the ranks of its node: 0 .. ranks_on(node).size()-1.
  int local_rank_of(int rank) const noexcept { return nodes_.place_of(rank); }
  /// Ascending.
  std::span<const int> ranks_on(int node) const noexcept { return nodes_.members(node); }
  /// Number of ranks on the fullest and on the emptiest node.
  int max_ranks_per_node() const noexcept { return nodes_.largest(); }
  int min_ranks_per_node() const noexcept { return nodes_.smallest(); }
  Placement placement() const noexcept { return placement_; }

  int groups() const noexcept { return node_groups_.parts(); }
  /// 0 .. groups()-1, numbered by their lowest node.
  int group_of(int node) const noexcept { return node_groups_.part_of(node); }
  /// Ascending.
  std::span<const int> nodes_in(int group) const noexcept { return node_groups_.members(group); }

  /// The levels as partitions of the ranks. domains() has at least as many parts as there are nodes, and cores() at
  /// least as many as there are domains.
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

}  // namespace bestride::inline model
