// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/rounds.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t page_bytes = 4096;

constexpr std::int64_t rounded_up(std::int64_t bytes, std::int64_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

constexpr std::int64_t sleeps_bytes = 128, slot_alignment = 128;

/// What lies before the entries: the lines of all ranks, their processors, and whether a rank has slept.
std::int64_t lines_bytes(int ranks, std::size_t line) noexcept {
  return static_cast<std::int64_t>(line * static_cast<std::size_t>(ranks) + RankProcessors::bytes(ranks)) +
         sleeps_bytes;
}

}  // namespace

RoundsShape RoundsShape::within(int ranks, std::int64_t limit) noexcept {
  constexpr std::int64_t largest = 128 * 1024;
  RoundsShape shape{ranks, largest};
  while (shape.slot_bytes > page_bytes && static_cast<std::int64_t>(shape.bytes()) > limit)
    shape.slot_bytes -= page_bytes;
  return shape;
}

std::int64_t RoundsShape::head_bytes() const noexcept {
  return rounded_up(lines_bytes(ranks, sizeof(Rounds::Line)) +
                        std::int64_t{ranks} * entries() * static_cast<std::int64_t>(sizeof(Rounds::Entry)),
                    page_bytes);
}

std::size_t RoundsShape::bytes() const noexcept {
  return static_cast<std::size_t>(head_bytes() + rounded_up(ring_bytes() * ranks, page_bytes));
}

void RoundsShape::clear(std::byte* memory) const noexcept {
  std::memset(memory, 0, static_cast<std::size_t>(head_bytes()));
}

Rounds::Rounds(std::byte* memory, const RoundsShape& shape, int rank)
    : memory_(memory),
      shape_(shape),
      rank_(rank),
      entry_mask_(static_cast<std::size_t>(shape.entries()) - 1),
      processors_(memory + sizeof(Line) * static_cast<std::size_t>(shape.ranks), shape.ranks, rank),
      sleeps_(reinterpret_cast<std::atomic<std::uint32_t>*>(memory + lines_bytes(shape.ranks, sizeof(Line)) -
                                                            sleeps_bytes)),
      entries_(reinterpret_cast<Entry*>(memory + lines_bytes(shape.ranks, sizeof(Line)))),
      rings_(memory + shape.head_bytes()),
      ended_(&line(rank).ended),
      near_{0, shape.near_bytes(), 0},
      far_{shape.near_bytes(), shape.ring_bytes(), shape.near_bytes()} {
  const auto levels = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(shape.ranks))) + 1;
  scratch_ = std::make_unique_for_overwrite<std::byte[]>(levels * strip_bytes);
}

Rounds::~Rounds() {
  constexpr Number far = Number{1} << 62;
  ended_->store(last_of(round_) + far, std::memory_order_release);
  ring_bell();
}

CallOutcome Rounds::close() noexcept {
  if (!open_) return CallOutcome::complete;
  end(last_of(round_));
  open_ = false;
  return outcome_;
}

void Rounds::look_for_ended() noexcept {
  all_ended_ = ended_->load(std::memory_order_relaxed);
  for (int other = 0; other < shape_.ranks; ++other) {
    if (other == rank_) continue;
    const Number ended = line(other).ended.load(std::memory_order_acquire);
    if (reached(ended, all_ended_)) continue;
    all_ended_ = ended;
    blocked_on_ = other;
  }
}

std::int64_t Rounds::Zone::place_for(std::int64_t bytes) const noexcept {
  if (oldest == next) return bytes <= last - first ? head + bytes <= last ? head : first : -1;
  const std::int64_t tail = taken[oldest % max_entries].begin;
  if (head <= tail) return head + bytes <= tail ? head : -1;
  return head + bytes <= last ? head : first + bytes <= tail ? first : -1;
}

void Rounds::Zone::take(Number round, std::int64_t begin, std::int64_t bytes) noexcept {
  taken[next++ % max_entries] = {round, begin};
  head = rounded_up(begin + bytes, slot_alignment);
}

void Rounds::Zone::free_until(Number ended) noexcept {
  while (oldest != next && reached(ended, taken[oldest % max_entries].round)) ++oldest;
}

bool Rounds::take(Number round, std::int64_t bytes) noexcept {
  const std::size_t index = index_of(round);
  const bool in_ring = bytes > static_cast<std::int64_t>(sizeof Entry::data);
  Zone* zone = nullptr;
  std::int64_t at = -1;
  const auto place_in_zone = [&](Zone& tried) {
    zone = &tried;
    tried.free_until(all_ended_);
    return (at = tried.place_for(bytes)) >= 0;
  };
  for (bool looked = false;; looked = true) {
    if (reached(all_ended_, filled_[index])) {
      if (!in_ring) break;
      const bool is_short = bytes <= near_.last / 2;
      if (is_short && place_in_zone(near_)) break;
      // Not before it is known that the other one is full.
      if ((looked || !is_short) && place_in_zone(far_)) break;
    }
    if (looked) return false;
    look_for_ended();
  }
  filled_[index] = round;
  if (in_ring) zone->take(round, at, bytes);
  places_[index] = in_ring ? ring(rank_) + at : entry(rank_, round).data;
  return true;
}

void Rounds::publish(Number round, std::int64_t bytes, std::int64_t stride) noexcept {
  stores_.flush();
  Entry& to = entry(rank_, round);
  const std::byte* const place = own(round);
  to.bytes = bytes;
  to.place = place == to.data ? in_entry : static_cast<std::uint32_t>(place - ring(rank_));
  to.stride = static_cast<std::uint32_t>(stride);
  to.kind = kind_;
  to.number.store(round, std::memory_order_release);
  ring_bell();
}

bool Rounds::has_ended_call(Number round, int rank) noexcept {
  blocked_on_ = rank;
  constexpr unsigned checks_between = 16;
  return ++checks_ % checks_between == 0 && reached(line(rank).ended.load(std::memory_order_acquire), last_of(round));
}

std::int64_t Rounds::told(Number round, int rank) noexcept {
  const Entry& from = entry(rank, round);
  if (from.number.load(std::memory_order_acquire) != round || from.kind != kind_) {
    note(CallOutcome::left);
    return -1;
  }
  if (from.bytes >= 0) return from.bytes;
  std::int64_t bytes;
  std::memcpy(&bytes, of(round, rank) + std::int64_t{from.stride} * shape_.ranks + 8 * rank_, 8);
  return bytes;
}

void Rounds::end(Number round) noexcept {
  ended_->store(round, std::memory_order_release);
  ring_bell();
}

Rounds::Sleep Rounds::prepare_sleep() noexcept {
  first_sleep_ = sleeps_->load(std::memory_order_relaxed) == 0;
  if (first_sleep_) sleeps_->store(1, std::memory_order_relaxed);
  checks_ = ~0u;  // the next check looks at everything
  return {blocked_on_, line(blocked_on_).bell.prepare()};
}

void Rounds::cancel(const Sleep& sleep) noexcept { line(sleep.rank).bell.cancel(); }

void Rounds::start(const Sleep& sleep, long nanoseconds) noexcept {
  // A rank that was about to publish when the first one fell asleep may not ring.
  constexpr long most_first = 50'000;
  line(sleep.rank).bell.sleep(sleep.rings, first_sleep_ ? std::min(nanoseconds, most_first) : nanoseconds);
}

}  // namespace bestride::inline collectives
