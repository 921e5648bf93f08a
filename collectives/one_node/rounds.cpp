// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/rounds.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t page_bytes = 4096;

/// What lies before the slots: the lines of all ranks, then their processors.
std::int64_t head_bytes(int ranks, std::size_t line) noexcept {
  const auto bytes = static_cast<std::int64_t>(line * static_cast<std::size_t>(ranks) + RankProcessors::bytes(ranks));
  return (bytes + page_bytes - 1) / page_bytes * page_bytes;
}

}  // namespace

RoundsShape RoundsShape::within(int ranks, std::int64_t limit) noexcept {
  constexpr std::int64_t largest = 128 * 1024;
  return {ranks, std::clamp<std::int64_t>(limit / slots / ranks / page_bytes * page_bytes, page_bytes, largest)};
}

std::size_t RoundsShape::bytes() const noexcept {
  return static_cast<std::size_t>(head_bytes(ranks, sizeof(Rounds::Line)) + slot_stride() * slots * ranks);
}

void RoundsShape::clear(std::byte* memory) const noexcept {
  std::memset(memory, 0, static_cast<std::size_t>(head_bytes(ranks, sizeof(Rounds::Line))));
}

Rounds::Rounds(std::byte* memory, const RoundsShape& shape, int rank)
    : memory_(memory),
      slots_(memory + head_bytes(shape.ranks, sizeof(Line))),
      shape_(shape),
      rank_(rank),
      processors_(memory + sizeof(Line) * static_cast<std::size_t>(shape.ranks), shape.ranks, rank) {
  const auto levels = static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(shape.ranks))) + 1;
  scratch_ = std::make_unique_for_overwrite<std::byte[]>(levels * strip_bytes);
}

CallOutcome Rounds::close() noexcept {
  if (!open_) return CallOutcome::complete;
  // A rank that carries out another collective may wait for this one. If this rank has published nothing, it learns
  // that now, otherwise from the header.
  if (!has_published_) line(rank_).published.store(last_of(round_), std::memory_order_release);
  end(last_of(round_));
  open_ = false;
  return outcome_;
}

// Without a ring, which would cost every call that is left a fence: only a call that others carry out has sleepers, and
// they sleep for a short time.
void Rounds::leave() noexcept {
  open();
  round_ = last_of(round_);
  line(rank_).published.store(round_, std::memory_order_release);
  line(rank_).ended.store(round_, std::memory_order_release);
  open_ = false;
}

bool Rounds::is_vacant(Number round) noexcept {
  const Number wanted = filled_[index_of(round)];
  if (reached(all_ended_, wanted)) return true;
  Number least = round;
  for (int other = 0; other < shape_.ranks; ++other) {
    if (other == rank_) continue;
    const Number ended = line(other).ended.load(std::memory_order_acquire);
    if (!reached(ended, wanted)) {
      blocked_on_ = other;
      return false;
    }
    if (!reached(ended, least)) least = ended;
  }
  all_ended_ = least;
  return true;
}

void Rounds::publish(Number round, const Operands& messages) noexcept {
  const std::int64_t first = messages.bytes(rank_ == 0 ? shape_.ranks - 1 : 0);
  bool differ = false;
  for (int to = 0; to < shape_.ranks; ++to) differ |= to != rank_ && messages.bytes(to) != first;
  if (differ)
    for (int to = 0; to < shape_.ranks; ++to) lengths(rank_, round)[to] = messages.bytes(to);
  publish_header(round, differ ? differing_bytes : first);
}

void Rounds::publish_header(Number round, std::int64_t bytes) noexcept {
  stores_.flush();
  const int index = index_of(round);
  has_published_ = true;
  filled_[index] = round;
  line(rank_).headers[index].store(mark_of(round, kind_) | static_cast<Header>(std::min(bytes, differing_bytes)),
                                   std::memory_order_relaxed);
  line(rank_).published.store(round, std::memory_order_release);
  line(rank_).bell.ring();
}

std::int64_t Rounds::told(Number round, int rank) noexcept {
  const Header header = line(rank).headers[index_of(round)].load(std::memory_order_relaxed);
  constexpr Header bytes_mask = static_cast<Header>(differing_bytes);
  if ((header & ~bytes_mask) != mark_of(round, kind_)) {
    note(CallOutcome::left);
    return -1;
  }
  const auto bytes = static_cast<std::int64_t>(header & bytes_mask);
  return bytes == differing_bytes ? lengths(rank, round)[rank_] : bytes;
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
