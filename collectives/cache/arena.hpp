// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arena: memory that the ranks of a node share, for the results of past calls. Each rank writes the parts that it
// contributed or received.
//
// CacheTable decides which part belongs to which result, in the same way on all ranks. A part is written only after all
// ranks of the node have entered the call that writes it (agree()). So no rank still reads the old content, and the
// arena needs no counters.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bestride::inline collectives {

/// The view of one rank; owns nothing. Used by one thread at a time.
class Arena {
 public:
  static constexpr std::int64_t chunk = 256 * 1024;  ///< pages are reserved in units of this many bytes

  /// An empty arena: this rank stores and finds nothing, so no member finds anything.
  Arena() = default;
  /// `memory`: `bytes` bytes, shared by the ranks of a node, aligned to 64; it outlives this object. `file`: the memfd
  /// that it maps from offset 0, or -1 for other memory. The pages of a file are reserved before they are written,
  /// because a write to a page that can't be allocated ends the process. May throw std::bad_alloc.
  Arena(std::byte* memory, std::int64_t bytes, int file = -1);

  std::byte* at(std::int64_t offset) const noexcept { return memory_ + offset; }
  /// True if [offset, offset + bytes) is inside the arena.
  bool has(std::int64_t offset, std::int64_t bytes) const noexcept { return memory_ && offset + bytes <= bytes_; }
  /// True if [offset, offset + bytes) is inside the arena and its pages could be reserved for writing. If they can't be
  /// allocated, this is logged once. Called piece by piece, so that pages are allocated while the network is busy, by
  /// the rank that uses them.
  bool reserve(std::int64_t offset, std::int64_t bytes) noexcept;

 private:
  std::byte* memory_ = nullptr;
  std::int64_t bytes_ = 0;
  int file_ = -1;
  std::vector<bool> reserved_;  ///< by chunk of a file: reserved by this rank; never released
};

}  // namespace bestride::inline collectives
