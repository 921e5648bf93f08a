// SPDX-License-Identifier: Apache-2.0
#pragma once
// Arena: the memory of a node in which its ranks keep results of past calls together, each writing what it had or received itself.
//
// Which part belongs to which result is CacheTable's business, the same on all ranks. A part is written only after all ranks of the
// node have come to the call that writes it (agree()), so nobody still reads there what an earlier call left: no counters are needed here.
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bestride {

/// One rank's view; owns nothing. Used by one thread at a time.
class Arena {
 public:
  static constexpr std::int64_t chunk = 256 * 1024;  ///< pages are reserved by this many bytes

  /// A rank without: it stores nothing and finds nothing, and so nothing is found anywhere.
  Arena() = default;
  /// `memory`: `bytes`, shared by the ranks of a node, aligned to 64; outlives this. `file`: what it is a mapping of, from its beginning
  /// (a memfd), or -1: plain memory. A file's pages are reserved before they are written, because a write to a page that can't be had
  /// ends the process. May throw std::bad_alloc.
  Arena(std::byte* memory, std::int64_t bytes, int file = -1);

  std::byte* at(std::int64_t offset) const noexcept { return memory_ + offset; }
  /// [offset, offset + bytes) of the arena; false: it has no such place.
  bool has(std::int64_t offset, std::int64_t bytes) const noexcept { return memory_ && offset + bytes <= bytes_; }
  /// The same, and its pages may be written. False: they can't be had; said once. Asked for piece by piece, so that what the first use of
  /// a page costs is spent while the wire is busy, and by the rank that uses it.
  bool reserve(std::int64_t offset, std::int64_t bytes) noexcept;

 private:
  std::byte* memory_ = nullptr;
  std::int64_t bytes_ = 0;
  int file_ = -1;
  std::vector<bool> reserved_;  ///< by chunk, of a file: by this rank; never given back
};

}  // namespace bestride
