// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/rounds.hpp"

#include <algorithm>
#include <bit>

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t page_bytes = 4096;

std::int64_t lines_bytes(int ranks, std::size_t line) noexcept {
  return (static_cast<std::int64_t>(line) * ranks + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

RoundsShape RoundsShape::within(int ranks, std::int64_t limit) noexcept {
  constexpr std::int64_t largest = 128 * 1024;
  return {ranks, std::clamp<std::int64_t>(limit / slots / ranks / page_bytes * page_bytes, page_bytes, largest)};
}

std::size_t RoundsShape::bytes() const noexcept {
  return static_cast<std::size_t>(lines_bytes(ranks, sizeof(Rounds::Line)) + slot_bytes * slots * ranks);
}

Rounds::Rounds(std::byte* memory, const RoundsShape& shape, int rank)
    : memory_(memory), slots_(memory + lines_bytes(shape.ranks, sizeof(Line))), shape_(shape), rank_(rank) {
  const auto levels = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(shape.ranks))) + 1;
  scratch_ = std::make_unique_for_overwrite<std::byte[]>(levels * strip_bytes);
}

bool Rounds::is_vacant(Number round) noexcept {
  if (round <= all_ended_ + RoundsShape::slots) return true;
  Number least = round;
  for (int other = 0; other < shape_.ranks; ++other) {
    if (other == rank_) continue;
    const Number ended = line(other).ended.load(std::memory_order_acquire);
    if (ended + RoundsShape::slots < round) {
      blocked_on_ = other;
      return false;
    }
    least = std::min(least, ended);
  }
  all_ended_ = least;
  return true;
}

void Rounds::publish(Number round) noexcept {
  stores_.flush();
  line(rank_).published.store(round, std::memory_order_release);
  line(rank_).bell.ring();
}

void Rounds::end(Number round) noexcept {
  line(rank_).ended.store(round, std::memory_order_release);
  line(rank_).bell.ring();
}

Rounds::Sleep Rounds::prepare_sleep() noexcept { return {blocked_on_, line(blocked_on_).bell.prepare()}; }

void Rounds::cancel(const Sleep& sleep) noexcept { line(sleep.rank).bell.cancel(); }

void Rounds::start(const Sleep& sleep, long nanoseconds) noexcept {
  line(sleep.rank).bell.sleep(sleep.rings, nanoseconds);
}

}  // namespace bestride::inline collectives
