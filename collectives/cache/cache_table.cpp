// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/cache_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/hash.hpp"

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t alignment = 64;
constexpr int max_levels = 6;
/// Limits on the known shapes: 4 MiB for their block sizes, and shapes_at_most.
constexpr std::size_t shapes_at_most = 64, key_bytes = 4 << 20;

constexpr std::int64_t rounded(std::int64_t bytes) noexcept { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

CacheTable::CacheTable(CacheLimits limits, int ranks)
    : limits_(limits),
      blocks_(static_cast<std::size_t>(ranks)),
      max_shapes_(std::clamp<std::size_t>(key_bytes / (sizeof(std::int64_t) * static_cast<std::size_t>(ranks)), 1,
                                          shapes_at_most)),
      keys_(max_shapes_ * static_cast<std::size_t>(ranks)),
      entries_(max_entries),
      samples_(std::make_unique_for_overwrite<std::uint16_t[]>(static_cast<std::size_t>(max_entries) * sample_words)) {
  shapes_.reserve(max_shapes_);
  free_.reserve(max_entries);
  by_offset_.reserve(max_entries);
  for (int id = max_entries; id-- > 0;) free_.push_back(static_cast<std::uint16_t>(id));
}

std::int64_t CacheTable::patience(std::int64_t bytes) const noexcept {
  return 4 +
         2 * std::min<std::int64_t>(candidates_of_a_shape, limits_.budget / std::max<std::int64_t>(1, rounded(bytes)));
}

int CacheTable::shape_of_blocks(std::uint32_t coding) noexcept {
  const std::size_t width = blocks_.size();
  const std::uint64_t hash = content_hash(blocks_.data(), static_cast<std::int64_t>(width * sizeof(std::int64_t)));
  for (std::size_t i = 0; i < shapes_.size(); ++i)
    if (shapes_[i].hash == hash && shapes_[i].coding == coding &&
        std::equal(blocks_.begin(), blocks_.end(), keys_.begin() + static_cast<std::ptrdiff_t>(i * width)))
      return static_cast<int>(i);
  std::size_t index = shapes_.size();
  if (index < max_shapes_) {
    shapes_.emplace_back();
  } else {
    index = 0;
    for (std::size_t i = 1; i < shapes_.size(); ++i)
      if (shapes_[i].last_use < shapes_[index].last_use) index = i;
    while (shapes_[index].count > 0) evict(shapes_[index].ids[0]);
    shapes_[index] = Shape{};
  }
  shapes_[index].hash = hash;
  shapes_[index].coding = coding;
  std::copy(blocks_.begin(), blocks_.end(), keys_.begin() + static_cast<std::ptrdiff_t>(index * width));
  return static_cast<int>(index);
}

CacheTable::Call CacheTable::begin(std::uint32_t coding) noexcept {
  ++counts_.calls;
  Call call;
  for (const std::int64_t bytes : blocks_) call.bytes += bytes;
  if (call.bytes < std::max<std::int64_t>(1, limits_.min_bytes) || rounded(call.bytes) > limits_.budget) return call;
  call.shape = shape_of_blocks(coding);
  Shape& shape = shapes_[static_cast<std::size_t>(call.shape)];
  shape.last_use = counts_.calls;
  if (shape.pause > 0) {
    --shape.pause;
    ++counts_.paused;
    return call;
  }
  call.active = true;
  call.candidates = shape.count;
  return call;
}

void CacheTable::touch(Shape& shape, int index) noexcept {
  std::rotate(shape.ids, shape.ids + index, shape.ids + index + 1);
  entries_[shape.ids[0]].last_use = counts_.calls;
}

void CacheTable::missed(Shape& shape, std::int64_t bytes) noexcept {
  const std::int64_t most = patience(bytes);
  if (++shape.misses < most) return;
  shape.misses = 0;
  shape.pause = most << shape.level;
  shape.level = std::min(shape.level + 1, max_levels);
}

CacheTable::Decision CacheTable::decide(const Call& call, const Agreed& agreed) noexcept {
  Decision decision;
  Shape& shape = shapes_[static_cast<std::size_t>(call.shape)];
  const std::uint64_t known = call.candidates == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << call.candidates) - 1;
  if (const std::uint64_t equal = agreed.equal & known) {
    const int index = std::countr_zero(equal);
    CacheEntry& entry = candidate(call, index);
    entry.superseded = false;
    touch(shape, index);
    decision.hit = entry.offset;
    shape.misses = shape.level = 0;
    ++counts_.hits;
    return decision;
  }
  CacheEntry* base = nullptr;
  const std::uint64_t usable = limits_.delta ? agreed.held & agreed.resembled & known : 0;
  if (usable) {
    const int index = std::countr_zero(usable & agreed.chosen ? usable & agreed.chosen : usable);
    base = &candidate(call, index);
    touch(shape, index);
    decision.base = base->offset;
    shape.misses = shape.level = 0;
    ++counts_.deltas;
  } else {
    missed(shape, call.bytes);
    ++counts_.misses;
  }
  decision.store = allocate(call, base);
  if (decision.store && base) base->superseded = true;
  return decision;
}

CacheEntry* CacheTable::allocate(const Call& call, const CacheEntry* base) noexcept {
  const std::int64_t bytes = rounded(call.bytes);
  // The base is never evicted: if the result does not fit beside it, the result is not stored.
  if (base && std::max(base->offset, limits_.budget - base->offset - base->bytes) < bytes) return nullptr;
  Shape& shape = shapes_[static_cast<std::size_t>(call.shape)];
  if (shape.count == candidates_of_a_shape) evict_one(base, call.shape);
  if (free_.empty()) evict_one(base, -1);
  std::int64_t offset;
  std::size_t before;
  while (!find_hole(bytes, &offset, &before))
    if (!evict_one(base, -1)) return nullptr;
  const std::uint16_t id = free_.back();
  free_.pop_back();
  by_offset_.insert(by_offset_.begin() + static_cast<std::ptrdiff_t>(before), id);
  std::copy_backward(shape.ids, shape.ids + shape.count, shape.ids + shape.count + 1);
  shape.ids[0] = id;
  ++shape.count;
  entries_[id] = CacheEntry{};
  entries_[id].offset = offset;
  entries_[id].bytes = bytes;
  entries_[id].last_use = counts_.calls;
  entries_[id].shape = call.shape;
  ++counts_.stores;
  return &entries_[id];
}

/// The first hole that is large enough. `before`: its position in by_offset_.
bool CacheTable::find_hole(std::int64_t bytes, std::int64_t* offset, std::size_t* before) const noexcept {
  std::int64_t end = 0;
  for (std::size_t i = 0; i <= by_offset_.size(); ++i) {
    const std::int64_t next = i < by_offset_.size() ? entries_[by_offset_[i]].offset : limits_.budget;
    if (next - end >= bytes) {
      *offset = end;
      *before = i;
      return true;
    }
    if (i < by_offset_.size()) end = next + entries_[by_offset_[i]].bytes;
  }
  return false;
}

/// Evicts a superseded entry if there is one, else any other: the least recently used, but never `base`. False if there
/// is none.
bool CacheTable::evict_one(const CacheEntry* base, int only_shape) noexcept {
  const CacheEntry* victim = nullptr;
  for (const std::uint16_t id : by_offset_) {
    const CacheEntry& entry = entries_[id];
    if (&entry == base || (only_shape >= 0 && entry.shape != only_shape)) continue;
    if (!victim || entry.superseded > victim->superseded ||
        (entry.superseded == victim->superseded && entry.last_use < victim->last_use))
      victim = &entry;
  }
  if (!victim) return false;
  evict(static_cast<std::uint16_t>(victim - entries_.data()));
  return true;
}

void CacheTable::evict(std::uint16_t id) noexcept {
  Shape& shape = shapes_[static_cast<std::size_t>(entries_[id].shape)];
  shape.count = static_cast<int>(std::remove(shape.ids, shape.ids + shape.count, id) - shape.ids);
  by_offset_.erase(std::find(by_offset_.begin(), by_offset_.end(), id));
  free_.push_back(id);
}

}  // namespace bestride::inline collectives
