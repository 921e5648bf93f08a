// SPDX-License-Identifier: Apache-2.0
#pragma once
// PartPool: memory that this rank shares with other ranks of its node, in parts. SegmentMap: the memory of other ranks.
//
// Making a window of 1 MiB and opening it takes hundreds of microseconds, as long as a few hundred short collectives.
// So the memory of a communicator is a part of a window that stays, and is used again for later communicators. Only the
// rank that gives parts away keeps accounts, so no agreement on them is needed.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/core/window.hpp"

namespace bestride::inline collectives {

/// A multiple of pages. data is nullptr: there is none.
struct Part {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
  WindowKey key;             ///< of the window that it is in
  std::int64_t offset = 0;   ///< from the beginning of that window
  std::int64_t written = 0;  ///< so many bytes at its beginning may have been used before; the others are zero
};

/// Not thread-safe.
class PartPool {
 public:
  enum class From {
    used,  ///< memory that has been used before, which costs next to nothing
    any    ///< or new memory
  };
  /// `limit`: bytes of all windows of this pool, and of all parts that it has given. No part: there is no memory within
  /// the limit.
  Part take(std::int64_t bytes, From from, std::int64_t limit) noexcept;
  /// No rank uses the part any more.
  void put_back(const Part& part) noexcept;
  /// Bytes of all windows.
  std::int64_t bytes() const noexcept { return bytes_; }

 private:
  struct Free {
    std::int64_t first, last;
  };
  /// Its memory up to `used` is given away or in `free`, which is sorted and has no two adjacent ranges.
  struct Segment {
    Window window;
    std::int64_t bytes = 0, used = 0;
    std::vector<Free> free;
    std::size_t parts = 0;  ///< given away
  };
  Part part_of(Segment& segment, std::int64_t first, std::int64_t bytes, bool written) noexcept;
  Segment* segment_with(std::int64_t bytes, std::int64_t limit);

  std::vector<Segment> segments_;
  std::int64_t bytes_ = 0;  ///< of all windows
  std::int64_t used_ = 0;   ///< of these, given away at least once
};

/// Not thread-safe. Windows stay mapped until the process ends.
class SegmentMap {
 public:
  /// The beginning of another rank's window, which is opened at the first call; nullptr: it can't be.
  std::byte* find(const WindowKey& key) noexcept;

 private:
  struct Known {
    std::uint64_t magic;
    Window window;
  };
  std::vector<Known> known_;
};

}  // namespace bestride::inline collectives
