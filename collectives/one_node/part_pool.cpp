// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/part_pool.hpp"

#include <algorithm>
#include <utility>

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t page = 4096;
/// A window has as many bytes as all before it together, within these bounds, so that there are few.
constexpr std::int64_t least_window = 256 * 1024, largest_window = 4 << 20;

}  // namespace

Part PartPool::part_of(Segment& segment, std::int64_t first, std::int64_t bytes, bool written) noexcept {
  ++segment.parts;
  return {segment.window.data() + first, bytes, segment.window.key(), first, written ? bytes : 0};
}

/// May throw std::bad_alloc.
PartPool::Segment* PartPool::segment_with(std::int64_t bytes, std::int64_t limit) {
  // A window that was made for parts with a higher limit may have room.
  if (used_ + bytes > limit) return nullptr;
  for (Segment& segment : segments_)
    if (segment.bytes - segment.used >= bytes) return &segment;
  std::int64_t size = std::max(bytes, std::clamp(bytes_, least_window, largest_window));
  if (bytes_ + size > limit) size = bytes;
  if (bytes_ + size > limit) return nullptr;
  segments_.reserve(segments_.size() + 1);
  Window window = Window::create(static_cast<std::size_t>(size));
  if (!window.data()) return nullptr;
  segments_.push_back({std::move(window), size, 0, {}, 0});
  bytes_ += size;
  return &segments_.back();
}

Part PartPool::take(std::int64_t bytes, From from, std::int64_t limit) noexcept {
  bytes = (bytes + page - 1) / page * page;
  try {
    Segment* best = nullptr;
    std::size_t place = 0;
    std::int64_t least = 0;
    for (Segment& segment : segments_)
      for (std::size_t i = 0; i < segment.free.size(); ++i) {
        const std::int64_t length = segment.free[i].last - segment.free[i].first;
        if (length < bytes || (best && length >= least)) continue;
        best = &segment;
        place = i;
        least = length;
      }
    if (best) {
      best->free.reserve(best->parts + 2);
      Free& range = best->free[place];
      const std::int64_t first = range.first;
      range.first += bytes;
      if (range.first == range.last) best->free.erase(best->free.begin() + static_cast<std::ptrdiff_t>(place));
      return part_of(*best, first, bytes, true);
    }
    if (from == From::used) return {};
    Segment* const segment = segment_with(bytes, limit);
    if (!segment) return {};
    // Room for put_back(), which must not fail: there are at most as many ranges as parts and one more.
    segment->free.reserve(segment->parts + 2);
    used_ += bytes;
    return part_of(*segment, std::exchange(segment->used, segment->used + bytes), bytes, false);
  } catch (...) {
    return {};
  }
}

void PartPool::put_back(const Part& part) noexcept {
  for (Segment& segment : segments_) {
    if (segment.window.data() + part.offset != part.data) continue;
    const std::int64_t first = part.offset, last = part.offset + part.bytes;
    const auto next = std::lower_bound(segment.free.begin(), segment.free.end(), first,
                                       [](const Free& range, std::int64_t at) { return range.first < at; });
    const bool joins_next = next != segment.free.end() && next->first == last;
    const bool joins_before = next != segment.free.begin() && std::prev(next)->last == first;
    --segment.parts;
    if (joins_before && joins_next) {
      std::prev(next)->last = next->last;
      segment.free.erase(next);
    } else if (joins_before) {
      std::prev(next)->last = last;
    } else if (joins_next) {
      next->first = first;
    } else {
      segment.free.insert(next, {first, last});
    }
    return;
  }
}

std::byte* SegmentMap::find(const WindowKey& key) noexcept {
  for (const Known& known : known_)
    if (known.magic == key.magic) return known.window.data();
  try {
    known_.reserve(known_.size() + 1);
  } catch (...) {
    return nullptr;
  }
  Window window = Window::open(key);
  if (!window.data()) return nullptr;
  known_.push_back({key.magic, std::move(window)});
  return known_.back().window.data();
}

}  // namespace bestride::inline collectives
