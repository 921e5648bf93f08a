// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lookup: the cache lookup of one call: which past result its members agree on, and where the new result is kept.
#include <cstdint>
#include <vector>

#include "collectives/cache/arena.hpp"
#include "collectives/cache/cache_table.hpp"
#include "collectives/cache/own_block.hpp"
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

class Lookup {
 public:
  /// `vectors`: the kept data; only its sizes are used. A kept result consists of the node vectors, one after the
  /// other. `coding`: how the blocks are coded; 0: plain bytes. All arguments outlive this object. May throw
  /// std::bad_alloc.
  Lookup(Hierarchy& hierarchy, const NodeVectors& vectors, const OwnBlock& own, CacheTable& table, Arena& arena,
         std::uint32_t coding);

  /// False: nothing is looked up, agreed on or kept.
  bool active() const noexcept { return call_.active; }
  /// Looks the call up. The task must end before the functions below are used. Only for an active call.
  Task run();

  /// The result, or nullptr. It stays in place until all ranks of the node have entered the next call.
  const std::byte* hit() const noexcept { return decision_.hit >= 0 ? arena_.at(decision_.hit) : nullptr; }
  /// Adds bytes saved by the differences that this rank sent.
  void saved(std::int64_t bytes) noexcept { table_.add_delta_saved_bytes(bytes); }
  /// A result of which all members hold their share, as the base of differences; or nullptr. It stays in place as long
  /// as hit().
  const std::byte* base() const noexcept { return decision_.base >= 0 ? arena_.at(decision_.base) : nullptr; }
  /// Where the vector of each node begins in a result, by node.
  const std::vector<std::int64_t>& begins() const noexcept { return begins_; }

  /// True if this rank is to write its share of the new result.
  bool keeps() const noexcept { return decision_.store && arena_.has(decision_.store->offset, decision_.store->bytes); }
  /// Where to write a piece of the new result, if keeps(). nullptr: it can't be kept completely.
  std::byte* memory_for(int node, Range range) noexcept;
  /// Call when all of this rank's share has been written, as far as memory_for() gave memory.
  void written() noexcept;

 private:
  Task look();
  void resemble() noexcept;

  Hierarchy& h_;
  const OwnBlock& own_;
  CacheTable& table_;
  Arena& arena_;
  std::vector<std::int64_t> begins_;
  std::int64_t other_nodes_bytes_;  ///< of a result
  std::int64_t own_begin_;          ///< of this rank's block in a result
  CacheTable::Call call_;
  CacheTable::Agreed mine_;
  CacheTable::Decision decision_;
  bool whole_ = true;  ///< every piece had memory
  std::uint64_t hash_ = 0;
  std::uint64_t content_ = 0;  ///< that of a result to which this rank contributed the same block; 0: none
  std::uint16_t sample_[OwnBlock::sample_words];
};

}  // namespace bestride::inline collectives
