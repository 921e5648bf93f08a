// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/slot_stores.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/copy.hpp"
#include "kernels/stream_copy.hpp"

namespace bestride::inline collectives {
namespace {

/// Ordinary stores at less than 5 GB/s are slow. Measured for strips: 2.4 between distant processors, 10 between those
/// that share a cache.
constexpr double slow_ns_per_byte = 0.2;

}  // namespace

void StoreChoice::sampled(bool slow) noexcept {
  contradictions_ = slow == bypasses_ ? 0 : contradictions_ + 1;
  if (contradictions_ == samples_to_change) {
    bypasses_ = slow;
    contradictions_ = 0;
  }
  left_ = contradictions_ > 0 ? 1 : bypasses_ ? bypassing_interval : ordinary_interval;
}

SlotStores::SlotStores(std::int64_t streaming_from)
    : from_(streaming_from), strip_(std::make_unique_for_overwrite<std::byte[]>(strip_bytes)) {}

void SlotStores::fill(std::byte* slot, const Operand& from, Range range) noexcept {
  if (range.length() < least_bytes) return from.read(slot, range.first, range.last);
  if (from_ < 0 && choice_.samples()) [[unlikely]] {
    const Range strip{range.first, std::min(range.last, range.first + strip_bytes)};
    sample(slot, from, strip);
    slot += strip.length();
    range.first = strip.last;
  }
  if (range.length() == 0 || !bypasses(range.length())) return from.read(slot, range.first, range.last);
  unordered_ = true;
  if (const std::byte* data = from.at(range.first))
    return stream_copy(slot, data, static_cast<std::size_t>(range.length()));
  for (std::int64_t first = range.first; first < range.last; first += strip_bytes) {
    const std::int64_t last = std::min(range.last, first + strip_bytes);
    from.read(strip_.get(), first, last);
    stream_copy(slot + (first - range.first), strip_.get(), static_cast<std::size_t>(last - first));
  }
}

/// The data is fetched first, so that only the stores are timed, until they have left the store buffer.
void SlotStores::sample(std::byte* slot, const Operand& from, Range range) noexcept {
  using Clock = std::chrono::steady_clock;
  from.read(strip_.get(), range.first, range.last);
  const Clock::time_point start = Clock::now();
  copy_bytes(slot, strip_.get(), static_cast<std::size_t>(range.length()));
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::chrono::duration<double, std::nano> taken = Clock::now() - start;
  choice_.sampled(taken.count() > slow_ns_per_byte * static_cast<double>(range.length()));
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
