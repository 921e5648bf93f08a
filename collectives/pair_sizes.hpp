// SPDX-License-Identifier: Apache-2.0
#pragma once
// PairSizes: how long the blocks of an exchange are that the ranks of one node send and get, and so where each lies in the node's strings.
#include <cstdint>
#include <vector>

#include "collectives/hierarchy.hpp"
#include "collectives/lanes.hpp"

namespace bestride {

/// Used by one thread at a time.
class PairSizes {
 public:
  /// Of staging, its end: for the sizes of unequal blocks.
  static constexpr std::int64_t table_bytes = Hierarchy::staging_bytes / 2;
  /// Unequal sizes fit there. The same answer on all members.
  static bool fit(const Topology& topology) noexcept;

  /// `each` >= 0: all blocks are that long. Otherwise fit(), all sizes will be set, and the table is in use while this is. The hierarchy
  /// outlives this. May throw std::bad_alloc.
  PairSizes(Hierarchy& hierarchy, std::int64_t each);

  /// What local rank q has for a rank of a node, and what it gets from a rank. Only before number().
  void add_given(int q, int node, std::int64_t bytes) noexcept { given_[place(node, q + 1)] += bytes; }
  void set_received(int q, int from, std::int64_t bytes) noexcept { table_[(q + 1) * topology_.ranks() + from] = bytes; }
  /// Once, when all are set; what follows holds afterwards.
  void number() noexcept;

  /// Bytes of the string that goes to a node, and of the one that comes from it.
  std::int64_t going(int node) const noexcept { return given_[place(node, local_ranks_)]; }
  std::int64_t coming(int node) const noexcept { return coming_[static_cast<std::size_t>(node)]; }
  /// In the string that goes to a node, what local rank q has for it.
  Range row(int node, int q) const noexcept { return {given_[place(node, q)], given_[place(node, q + 1)]}; }
  /// In the string that comes from the rank's node, what the rank has for local rank q; and for all of them.
  Range block(int from, int q) const noexcept { return {begin(from) + before(q, from), begin(from) + before(q + 1, from)}; }
  Range blocks(int from) const noexcept { return {begin(from), begin(from) + before(local_ranks_, from)}; }

 private:
  std::size_t place(int node, int q) const noexcept { return static_cast<std::size_t>(node * (local_ranks_ + 1) + q); }
  std::int64_t begin(int from) const noexcept { return begins_[static_cast<std::size_t>(from)]; }
  /// What the rank sends to the local ranks below q.
  std::int64_t before(int q, int from) const noexcept { return each_ >= 0 ? q * each_ : table_[q * topology_.ranks() + from]; }

  const Topology& topology_;
  const std::int64_t each_;
  const int local_ranks_;
  std::int64_t* const table_;         ///< of unequal sizes, by local rank and sending rank: before()
  std::vector<std::int64_t> given_;   ///< by node and local rank: where its part of the string for that node begins, and the end
  std::vector<std::int64_t> begins_;  ///< by sending rank: where its part of its node's string begins
  std::vector<std::int64_t> coming_;  ///< by node
};

}  // namespace bestride
