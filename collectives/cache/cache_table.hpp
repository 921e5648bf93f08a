// SPDX-License-Identifier: Apache-2.0
#pragma once
// CacheTable: which past results a node's arena holds and where, and how the next call is served.
//
// All shared decisions depend only on the calls and on the words that all members agreed on. So all members have equal
// tables without further messages: the same entries at the same offsets. Only an entry's `held`, `hash` and `content`
// are local to this rank.
//
// Results are kept by shape (the bytes of each rank's block, and the coding if they are codes) and by content, not by
// buffer. The budget is limited, and the least recently used results are evicted first. If a result was sent as the
// difference from an older one, it is stored beside the older one, which is marked superseded and evicted before all
// others. So results that recur alternately are all found. Weights that change at every step need space for one model
// and, if there is no more, for one further result. Alternative considered: overwriting the older result. That saves
// this space, but data with equal exponents or zeros is always slightly similar and would evict results that are still
// in use.
//
// Lookups of a shape pause if they find nothing. After `patience` failed calls in a row (enough for a sweep over as
// many results as can be kept to return to the first one), the shape is skipped for as many calls, then for twice as
// many, up to 64 times as many. A skipped call has no lookup, no agreement and no store.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/cache/own_block.hpp"

namespace bestride::inline collectives {

/// The same on all members.
struct CacheLimits {
  std::int64_t budget = 0;  ///< bytes of results kept at a time; each node's arena has at least this size
  std::int64_t min_bytes =
      256 * 1024;     ///< shorter results are not looked up: at 200 Mbit/s, agreement takes as long as 4 KiB, 0.16 ms
  bool delta = true;  ///< also look for results that differ in a part of their words
};

/// Counts so far, for the report. Counts of calls are equal on all members. If byte counts are summed over all members,
/// each link's bytes count once.
struct CacheCounts {
  std::uint64_t calls = 0, hits = 0, deltas = 0, misses = 0, stores = 0, paused = 0;
  std::uint64_t hit_bytes = 0;  ///< of results found: bytes that other nodes did not have to send to this one; counted
                                ///< by the first rank of a node
  std::uint64_t delta_saved_bytes = 0;  ///< bytes saved by the differences that this rank sent
};

struct CacheEntry {
  // The same on all members.
  std::int64_t offset = 0, bytes = 0;  ///< in the arena; bytes include the padding for alignment
  std::uint64_t last_use = 0;          ///< number of the call
  int shape = -1;
  bool superseded = false;  ///< a newer result was sent as the difference from this one
  // Local to this rank.
  bool held = false;          ///< this rank has written all of its share
  std::uint64_t hash = 0;     ///< of this rank's block
  std::uint64_t content = 0;  ///< equal for entries in which this rank's block has the same bytes
};

class CacheTable {
 public:
  static constexpr int candidates_of_a_shape = 64;  ///< one bit each in the agreed words
  static constexpr int max_entries = 1024;
  static constexpr int sample_words = OwnBlock::sample_words;

  /// `ranks` of the communicator. All memory is allocated here. May throw std::bad_alloc.
  CacheTable(CacheLimits limits, int ranks);

  /// The caller writes the bytes of each member's block here before begin(), in the same order on all members.
  std::span<std::int64_t> blocks() noexcept { return blocks_; }

  struct Call {
    bool active = false;  ///< false: nothing is looked up, agreed on or kept
    int shape = -1;
    int candidates = 0;
    std::int64_t bytes = 0;  ///< of the result
  };
  /// The coding of a kept result: `plain` bytes, or another number for each kind of codes. A result is only found for
  /// its own coding.
  static constexpr std::uint32_t plain = 0;
  /// Starts a call of the shape given by blocks() and `coding`.
  Call begin(std::uint32_t coding = plain) noexcept;
  /// Candidate `index`; the most recently used is first. Valid until decide().
  CacheEntry& candidate(const Call& call, int index) noexcept { return entries_[id_of(call, index)]; }
  /// Memory for a sample of this rank's block in that result.
  std::uint16_t* sample(const CacheEntry& entry) noexcept {
    return samples_.get() + (&entry - entries_.data()) * sample_words;
  }
  bool delta() const noexcept { return limits_.delta; }
  /// A new CacheEntry::content, for a block that equals no earlier one; never 0.
  std::uint64_t new_content() noexcept { return ++contents_; }

  /// What all members agreed on, one bit per candidate.
  struct Agreed {
    std::uint64_t equal = 0;      ///< all hold it, and their blocks are unchanged
    std::uint64_t held = 0;       ///< all hold it
    std::uint64_t chosen = 0;     ///< no member found other candidates more similar to its block
    std::uint64_t resembled = 0;  ///< some member's block is similar
  };
  struct Decision {
    std::int64_t hit = -1;   ///< offset of the result in the arena
    std::int64_t base = -1;  ///< offset of the base of the differences; not written before the next call
    CacheEntry* store =
        nullptr;  ///< the new result is to be kept here; the caller fills in the local fields when it has been written
  };
  /// Decides a call. Must be called exactly once for every active call.
  Decision decide(const Call& call, const Agreed& agreed) noexcept;

  /// Calls use(entry) for every entry, in the order of their offsets.
  template <class Use>
  void each_entry(Use use) const {
    for (const std::uint16_t id : by_offset_) use(entries_[id]);
  }
  const CacheCounts& counts() const noexcept { return counts_; }
  /// The caller counts bytes.
  void add_hit_bytes(std::int64_t bytes) noexcept { counts_.hit_bytes += static_cast<std::uint64_t>(bytes); }
  void add_delta_saved_bytes(std::int64_t bytes) noexcept {
    counts_.delta_saved_bytes += static_cast<std::uint64_t>(bytes);
  }
  /// The number of failed calls in a row after which lookups of results of this size pause.
  std::int64_t patience(std::int64_t bytes) const noexcept;

 private:
  struct Shape {
    std::uint64_t hash = 0;
    std::uint32_t coding = plain;
    std::uint64_t last_use = 0;  ///< number of the call
    std::int64_t pause = 0;      ///< calls to skip
    std::int64_t misses = 0;     ///< in a row
    int level = 0;               ///< pauses in a row
    int count = 0;
    std::uint16_t ids[candidates_of_a_shape];  ///< the most recently used first
  };
  std::size_t id_of(const Call& call, int index) const noexcept {
    return shapes_[static_cast<std::size_t>(call.shape)].ids[index];
  }
  int shape_of_blocks(std::uint32_t coding) noexcept;
  void touch(Shape& shape, int index) noexcept;
  void missed(Shape& shape, std::int64_t bytes) noexcept;
  CacheEntry* allocate(const Call& call, const CacheEntry* base) noexcept;
  bool find_hole(std::int64_t bytes, std::int64_t* offset, std::size_t* before) const noexcept;
  bool evict_one(const CacheEntry* base, int only_shape) noexcept;
  void evict(std::uint16_t id) noexcept;

  const CacheLimits limits_;
  CacheCounts counts_;
  std::uint64_t contents_ = 0;
  std::vector<std::int64_t> blocks_;
  std::vector<Shape> shapes_;  ///< the known shapes, by number
  std::size_t max_shapes_;
  std::vector<std::int64_t> keys_;  ///< blocks_ of each shape
  std::vector<CacheEntry> entries_;
  std::vector<std::uint16_t> free_;  ///< unused entries
  std::vector<std::uint16_t> by_offset_;
  std::unique_ptr<std::uint16_t[]> samples_;  ///< not touched before its first use
};

}  // namespace bestride::inline collectives
