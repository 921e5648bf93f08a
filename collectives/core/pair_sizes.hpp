// SPDX-License-Identifier: Apache-2.0
#pragma once
// PairSizes: the sizes of the alltoall blocks that the ranks of one node send and receive. They determine where each
// block lies in the node vectors.
#include <cstdint>
#include <vector>

#include "collectives/core/hierarchy.hpp"
#include "collectives/core/lanes.hpp"

namespace bestride {

/// Used by one thread at a time.
class PairSizes {
 public:
  /// The table of unequal sizes takes these bytes at the end of the staging memory.
  static constexpr std::int64_t table_bytes = Hierarchy::staging_bytes / 2;
  /// True if unequal sizes fit into the table. The same answer on all members.
  static bool fit(const Topology& topology) noexcept;

  /// `each` >= 0: all blocks have this size. Otherwise fit() must be true, all sizes must be set, and the table is in
  /// use during the lifetime of this object. The hierarchy outlives this object. May throw std::bad_alloc.
  PairSizes(Hierarchy& hierarchy, std::int64_t each);

  /// Sets what local rank q sends to the ranks of a node, and what it receives from a rank. Only before number().
  void add_given(int q, int node, std::int64_t bytes) noexcept { given_[place(node, q + 1)] += bytes; }
  void set_received(int q, int from, std::int64_t bytes) noexcept {
    table_[(q + 1) * topology_.ranks() + from] = bytes;
  }
  /// Called once, when all sizes are set. The functions below are valid afterwards.
  void number() noexcept;

  /// Bytes of the vector that goes to a node, and of the vector that comes from it.
  std::int64_t going(int node) const noexcept { return given_[place(node, local_ranks_)]; }
  std::int64_t coming(int node) const noexcept { return coming_[static_cast<std::size_t>(node)]; }
  /// What local rank q sends, as a range of the vector that goes to a node.
  Range row(int node, int q) const noexcept { return {given_[place(node, q)], given_[place(node, q + 1)]}; }
  /// block(): what rank `from` sends to local rank q, as a range of the vector that comes from its node. blocks(): what
  /// it sends to all local ranks.
  Range block(int from, int q) const noexcept {
    return {begin(from) + before(q, from), begin(from) + before(q + 1, from)};
  }
  Range blocks(int from) const noexcept { return {begin(from), begin(from) + before(local_ranks_, from)}; }

 private:
  std::size_t place(int node, int q) const noexcept { return static_cast<std::size_t>(node * (local_ranks_ + 1) + q); }
  std::int64_t begin(int from) const noexcept { return begins_[static_cast<std::size_t>(from)]; }
  /// What the rank sends to the local ranks below q.
  std::int64_t before(int q, int from) const noexcept {
    return each_ >= 0 ? q * each_ : table_[q * topology_.ranks() + from];
  }

  const Topology& topology_;
  const std::int64_t each_;
  const int local_ranks_;
  std::int64_t* const table_;  ///< for unequal sizes, by local rank and sending rank: before()
  std::vector<std::int64_t>
      given_;  ///< by node and local rank: where its part of the vector for that node begins, and the end
  std::vector<std::int64_t> begins_;  ///< by sending rank: where its part of its node's vector begins
  std::vector<std::int64_t> coming_;  ///< by node
};

}  // namespace bestride
