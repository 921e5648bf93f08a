// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/slot_stores.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/copy.hpp"
#include "kernels/stream_copy.hpp"

namespace bestride::inline collectives {
namespace {

/// Ordinary stores at less than 5 GB/s are slow. Measured for strips: 2.4 between distant processors, 10 between those
/// that share a cache.
constexpr std::int64_t slow_bytes_per_ns = 5;

}  // namespace

void StoreChoice::sampled(bool slow) noexcept {
  contradictions_ = slow == bypasses_ ? 0 : contradictions_ + 1;
  if (contradictions_ == samples_to_change) {
    bypasses_ = slow;
    contradictions_ = 0;
  }
  left_ = contradictions_ > 0 ? 1 : bypasses_ ? bypassing_interval : ordinary_interval;
}

SlotStores::SlotStores(std::int64_t streaming_from, StoreChoice choice)
    : from_(streaming_from), choice_(choice), strip_(std::make_unique_for_overwrite<std::byte[]>(strip_bytes)) {}

void SlotStores::fill(std::byte* slot, const Operand& from, Range range) noexcept {
  struct Source {
    const Operand& from;
    const std::byte* at(Range part) const { return from.at(part.first); }
    void read(Range part, std::byte* to) const { from.read(to, part.first, part.last); }
  };
  fill(slot, range, Source{from});
}

void SlotStores::fill(std::byte* slot, const NodeVectors& from, int node, Range range) noexcept {
  struct Source {
    const NodeVectors& from;
    int node;
    const std::byte* at(Range part) const { return from.at(node, part); }
    void read(Range part, std::byte* to) const { from.read(node, part, to); }
  };
  fill(slot, range, Source{from, node});
}

void SlotStores::fill(std::byte* slot, const std::byte* data, std::int64_t bytes) noexcept {
  struct Source {
    const std::byte* data;
    const std::byte* at(Range part) const { return data + part.first; }
    void read(Range part, std::byte* to) const {
      copy_bytes(to, data + part.first, static_cast<std::size_t>(part.length()));
    }
  };
  fill(slot, {0, bytes}, Source{data});
}

template <class Source>
void SlotStores::fill(std::byte* slot, Range range, const Source& from) noexcept {
  if (range.length() < least_bytes) return from.read(range, slot);
  if (from_ < 0 && choice_.samples()) [[unlikely]] {
    const Range strip{range.first, std::min(range.last, range.first + strip_bytes)};
    from.read(strip, strip_.get());
    sample(slot, strip.length());
    slot += strip.length();
    range.first = strip.last;
  }
  if (range.length() == 0 || !bypasses(range.length())) return from.read(range, slot);
  unordered_ = true;
  if (const std::byte* data = from.at(range)) return stream_copy(slot, data, static_cast<std::size_t>(range.length()));
  for (Range strip = range; strip.first < range.last; strip.first = strip.last) {
    strip.last = std::min(range.last, strip.first + strip_bytes);
    from.read(strip, strip_.get());
    stream_copy(slot + (strip.first - range.first), strip_.get(), static_cast<std::size_t>(strip.length()));
  }
}

/// The data was fetched before, so only the stores are timed, until they have left the store buffer.
void SlotStores::sample(std::byte* slot, std::int64_t bytes) noexcept {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  copy_bytes(slot, strip_.get(), static_cast<std::size_t>(bytes));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::chrono::nanoseconds taken = Clock::now() - start;
  choice_.sampled(taken.count() * slow_bytes_per_ns > bytes);
}

void SlotStores::keep(std::byte* slot, const std::byte* data, std::int64_t bytes) noexcept {
  if (slot == data) return;
  stream_copy(slot, data, static_cast<std::size_t>(bytes));
  unordered_ = true;
}

void SlotStores::flush() noexcept {
  if (!unordered_) return;
  stream_fence();
  unordered_ = false;
}

}  // namespace bestride::inline collectives
