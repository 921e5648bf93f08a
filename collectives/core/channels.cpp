// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/channels.hpp"

#include <utility>

namespace bestride::inline collectives {
namespace {
constexpr std::size_t line = 64;
}

std::size_t ChannelShape::counters_bytes() const noexcept {
  const std::size_t rings = 2 * static_cast<std::size_t>(ranks);
  return (rings * (1 + static_cast<std::size_t>(ranks)) * line + 4095) / 4096 * 4096;
}
std::size_t ChannelShape::bytes() const noexcept {
  return counters_bytes() + 2 * static_cast<std::size_t>(ranks) * slots * static_cast<std::size_t>(slot_bytes);
}

Channels::Channels(std::byte* memory, const ChannelShape& shape, int local_rank, SlotStores stores)
    : memory_(memory),
      shape_(shape),
      rank_(local_rank),
      cursors_(2 * static_cast<std::size_t>(shape.ranks)),
      stores_(std::move(stores)) {}

Channels::Counter& Channels::published(std::size_t ring) const noexcept {
  static_assert(sizeof(Counter) == 8 && Counter::is_always_lock_free);
  return *reinterpret_cast<Counter*>(memory_ + ring * (1 + static_cast<std::size_t>(shape_.ranks)) * line);
}
Channels::Counter& Channels::taken(std::size_t ring, int reader) const noexcept {
  return *reinterpret_cast<Counter*>(
      memory_ + (ring * (1 + static_cast<std::size_t>(shape_.ranks)) + 1 + static_cast<std::size_t>(reader)) * line);
}
std::byte* Channels::slot_of(std::size_t ring, std::uint64_t piece) const noexcept {
  return memory_ + shape_.counters_bytes() +
         (ring * ChannelShape::slots + piece % ChannelShape::slots) * static_cast<std::size_t>(shape_.slot_bytes);
}

bool Channels::vacant(ChannelKind kind) const noexcept {
  const std::size_t own = ring(rank_, kind);
  const std::uint64_t piece = cursors_[own];
  if (piece < ChannelShape::slots) return true;
  // The value that a reader's counter must reach before this slot is free.
  const std::uint64_t before = piece - ChannelShape::slots + 1;
  const int reader = readers_[static_cast<int>(kind)][piece % ChannelShape::slots];
  if (reader != everyone) return taken(own, reader).load(std::memory_order_acquire) >= before;
  for (int other = 0; other < shape_.ranks; ++other)
    if (other != rank_ && taken(own, other).load(std::memory_order_acquire) < before) return false;
  return true;
}

std::byte* Channels::slot(ChannelKind kind) const noexcept {
  const std::size_t own = ring(rank_, kind);
  return slot_of(own, cursors_[own]);
}

void Channels::publish(ChannelKind kind, int reader) noexcept {
  stores_.flush();
  const std::size_t own = ring(rank_, kind);
  readers_[static_cast<int>(kind)][cursors_[own] % ChannelShape::slots] = reader;
  published(own).store(++cursors_[own], std::memory_order_release);
}

const std::byte* Channels::arrived(int from, ChannelKind kind) const noexcept {
  const std::size_t other = ring(from, kind);
  const std::uint64_t piece = cursors_[other];
  return published(other).load(std::memory_order_acquire) > piece ? slot_of(other, piece) : nullptr;
}

void Channels::take(int from, ChannelKind kind) noexcept {
  const std::size_t other = ring(from, kind);
  taken(other, rank_).store(++cursors_[other], std::memory_order_release);
}

}  // namespace bestride::inline collectives
