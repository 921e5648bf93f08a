// SPDX-License-Identifier: Apache-2.0
#pragma once
// CacheTable: which past results a node's arena holds, where, and what is done with the next call.
//
// Everything agreed follows from the calls and from the words that all members agreed on, so the tables of all members are the same
// without asking: the same entries at the same places. Only what an entry's own part says (held, hash, content) is this rank's.
//
// Results are kept by shape (the bytes of each rank's block, and what codes they are if any), by content and not by buffer, the least recently used within a budget
// going first. A result that was sent as the difference from an older one is kept beside it, and the older one is marked superseded: it
// goes before any other. So results that come back in turn all hit, and weights that change at every step cost the room of one model
// and one result more, if there is no more. (Alternative that lost: overwriting the older one; it saves that room, but everything that ends in the
// same exponents or zeros resembles a little, and would drive out what is still asked for.)
//
// A shape that finds nothing pauses: after `patience` calls in a row (what a sweep over as many results as can be kept may need to come
// back to one) it is left alone for as many, then twice as many, up to 64 times: no looking, no agreement, no storing.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/cache/own_block.hpp"

namespace bestride {

/// The same on all members.
struct CacheLimits {
  std::int64_t budget = 0;                ///< bytes of results kept at a time: so much each node's arena has room for
  std::int64_t least_bytes = 256 * 1024;  ///< shorter results are not looked at: agreeing takes what 4 KiB take at 200 Mbit/s, 0.16 ms
  bool delta = true;                      ///< look for results that differ in a part of their words
};

/// What happened so far; for the report. Calls are counted alike on all members; of bytes the sum over all members counts each link's once.
struct CacheCounts {
  std::uint64_t calls = 0, hits = 0, deltas = 0, misses = 0, stores = 0, paused = 0;
  std::uint64_t hit_bytes = 0;          ///< of results that were found: what other nodes had no need to send to this one; of a node its first rank counts
  std::uint64_t delta_saved_bytes = 0;  ///< by which differences that this rank sent are shorter than what they stand for
};

struct CacheEntry {
  // Agreed.
  std::int64_t offset = 0, bytes = 0;  ///< in the arena; bytes with what is lost by alignment
  std::uint64_t last_use = 0;          ///< number of the call
  int shape = -1;
  bool superseded = false;             ///< a newer result was sent as its difference from this one
  // This rank's own.
  bool held = false;          ///< it has written all that it had to write
  std::uint64_t hash = 0;     ///< of its block
  std::uint64_t content = 0;  ///< equal for entries in which its block is the same, byte by byte
};

class CacheTable {
 public:
  static constexpr int candidates_of_a_shape = 64;  ///< a bit each in what is agreed on
  static constexpr int most_entries = 1024;
  static constexpr int sample_words = OwnBlock::sample_words;

  /// `ranks` of the communicator. Everything is allocated here, nothing later. May throw std::bad_alloc.
  CacheTable(CacheLimits limits, int ranks);

  /// Where the caller puts the bytes of each member's block, in the same order on all of them, before begin().
  std::span<std::int64_t> blocks() noexcept { return blocks_; }

  struct Call {
    bool active = false;  ///< false: nothing is to be looked at, agreed on or kept
    int shape = -1;
    int candidates = 0;
    std::int64_t bytes = 0;  ///< of the result
  };
  /// What a kept result is: bytes as they were given, or some other number for each coding. Results of one are never found for another.
  static constexpr std::uint32_t plain = 0;
  /// A call of the shape that blocks() and `coding` say.
  Call begin(std::uint32_t coding = plain) noexcept;
  /// Candidate `index`, the most recently used first. Until decide().
  CacheEntry& candidate(const Call& call, int index) noexcept { return entries_[id_of(call, index)]; }
  /// Room for a sample of this rank's block in that result.
  std::uint16_t* sample(const CacheEntry& entry) noexcept { return samples_.get() + (&entry - entries_.data()) * sample_words; }
  bool delta() const noexcept { return limits_.delta; }
  /// A name for what this rank's block is, if it is none of those before; never 0.
  std::uint64_t new_content() noexcept { return ++contents_; }

  /// What all members agreed on, a bit for each candidate.
  struct Agreed {
    std::uint64_t equal = 0;     ///< all have it, and their blocks are what they gave then
    std::uint64_t held = 0;      ///< all have it
    std::uint64_t chosen = 0;    ///< no member found others more alike to its block
    std::uint64_t resembled = 0; ///< some member's block resembles
  };
  struct Decision {
    std::int64_t hit = -1;        ///< where the result lies in the arena
    std::int64_t base = -1;       ///< where the older result lies from which differences are taken; not written to before the next call
    CacheEntry* store = nullptr;  ///< the result is to be kept here; its own part is the caller's to fill in when that is done
  };
  /// Ends the deciding of a call; exactly once for every active one.
  Decision decide(const Call& call, const Agreed& agreed) noexcept;

  /// use(entry) for every entry, in the order of their places.
  template <class Use>
  void each_entry(Use use) const {
    for (const std::uint16_t id : by_offset_) use(entries_[id]);
  }
  const CacheCounts& counts() const noexcept { return counts_; }
  /// Bytes are the caller's to count.
  void add_hit_bytes(std::int64_t bytes) noexcept { counts_.hit_bytes += static_cast<std::uint64_t>(bytes); }
  void add_delta_saved_bytes(std::int64_t bytes) noexcept { counts_.delta_saved_bytes += static_cast<std::uint64_t>(bytes); }
  /// Calls in a row without a find until this many bytes pause.
  std::int64_t patience(std::int64_t bytes) const noexcept;

 private:
  struct Shape {
    std::uint64_t hash = 0;
    std::uint32_t coding = plain;
    std::uint64_t last_use = 0;  ///< number of the call
    std::int64_t pause = 0;      ///< calls to be left alone
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
  CacheEntry* place(const Call& call, const CacheEntry* base) noexcept;
  bool find_hole(std::int64_t bytes, std::int64_t* offset, std::size_t* before) const noexcept;
  bool evict_one(const CacheEntry* base, int only_shape) noexcept;
  void evict(std::uint16_t id) noexcept;

  const CacheLimits limits_;
  CacheCounts counts_;
  std::uint64_t contents_ = 0;
  std::vector<std::int64_t> blocks_;
  std::vector<Shape> shapes_;         ///< by number; those seen
  std::size_t most_shapes_;
  std::vector<std::int64_t> keys_;    ///< blocks_ of each shape
  std::vector<CacheEntry> entries_;
  std::vector<std::uint16_t> free_;   ///< entries not in use
  std::vector<std::uint16_t> by_offset_;
  std::unique_ptr<std::uint16_t[]> samples_;  ///< not touched before it is used
};

}  // namespace bestride
