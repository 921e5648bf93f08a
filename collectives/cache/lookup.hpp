// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lookup: one call's look into the cache: what its members agree to find there, and the place where its result is kept.
#include <cstdint>
#include <vector>

#include "collectives/cache/arena.hpp"
#include "collectives/cache/cache_table.hpp"
#include "collectives/cache/own_block.hpp"
#include "collectives/hierarchy.hpp"
#include "collectives/strand.hpp"
#include "collectives/strings.hpp"

namespace bestride {

class Lookup {
 public:
  /// `strings`: of what is kept; asked for its sizes only. A kept result is the strings of the nodes, one after the other. `coding`: as for
  /// CacheTable::begin(). All outlive this. May throw std::bad_alloc.
  Lookup(Hierarchy& hierarchy, const NodeStrings& strings, const OwnBlock& own, CacheTable& table, Arena& arena, std::uint32_t coding);

  /// False: nothing is looked at, agreed on or kept.
  bool active() const noexcept { return call_.active; }
  /// Of an active call, before anything below is asked.
  Strand run();

  /// The result, or nullptr. It stays where it is until all ranks of the node have come to the next call.
  const std::byte* hit() const noexcept { return decision_.hit >= 0 ? arena_.at(decision_.hit) : nullptr; }
  /// What differences that this rank sent saved.
  void saved(std::int64_t bytes) noexcept { table_.add_delta_saved_bytes(bytes); }
  /// A result of which all members hold their share, to take differences from; or nullptr. It stays as long.
  const std::byte* base() const noexcept { return decision_.base >= 0 ? arena_.at(decision_.base) : nullptr; }
  /// By node: where its string begins in a result.
  const std::vector<std::int64_t>& begins() const noexcept { return begins_; }

  /// This rank is to write its share of the new result.
  bool keeps() const noexcept { return decision_.store && arena_.has(decision_.store->offset, decision_.store->bytes); }
  /// Where a piece of it is to be written, if keeps(); nullptr: not all of it can be kept.
  std::byte* place(int node, Range range) noexcept;
  /// All of this rank's share has been written, as far as there was a place.
  void written() noexcept;

 private:
  Strand look();
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
  bool whole_ = true;  ///< every piece had its place
  std::uint64_t hash_ = 0;
  std::uint64_t content_ = 0;  ///< that of a result in which this rank gave the same; 0: none
  std::uint16_t sample_[OwnBlock::sample_words];
};

}  // namespace bestride
