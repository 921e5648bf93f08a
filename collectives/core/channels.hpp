// SPDX-License-Identifier: Apache-2.0
#pragma once
// Channels: transfer of bytes from one rank to others of its node, through memory that all of them share.
//
// Each rank has two channels, which are rings of slots that only it fills: one for its own data, one for data that it
// received from the network. So a late piece never delays one that is available. All ranks compute the same pieces,
// order and readers of a channel, so a piece needs no header. A slot is reused after its readers have taken the piece.
// Counters only grow and are not reset between collectives: a rank may be ahead of its neighbors by as many pieces as
// there are slots.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/core/slot_stores.hpp"

namespace bestride::inline collectives {

enum class ChannelKind : int {
  own,      ///< what the rank had at the start of the collective, in the order of its pieces
  arrived,  ///< what it received or computed
};

/// Layout of the memory; the same on all ranks of a node.
struct ChannelShape {
  static constexpr int slots = 4;
  int ranks = 1;                ///< ranks of the node
  std::int64_t slot_bytes = 0;  ///< a multiple of 4096

  std::size_t counters_bytes() const noexcept;
  std::size_t bytes() const noexcept;
};

/// The view of one rank. Used by one thread at a time.
class Channels {
 public:
  static constexpr int everyone = -1;

  Channels() = default;
  /// `memory`: shape.bytes() bytes, shared, zero before the first use, aligned to 64; it outlives this object. May
  /// throw std::bad_alloc.
  Channels(std::byte* memory, const ChannelShape& shape, int local_rank, SlotStores stores = SlotStores());

  int ranks() const noexcept { return shape_.ranks; }
  std::int64_t slot_bytes() const noexcept { return shape_.slot_bytes; }

  /// True if the next slot may be filled.
  bool vacant(ChannelKind kind) const noexcept;
  /// The next slot, slot_bytes() long. The caller may write it until publish(). Valid only while vacant().
  std::byte* slot(ChannelKind kind) const noexcept;
  /// Writes data to the next slot: as SlotStores::fill(). `at`: where in the slot, in bytes.
  void fill(ChannelKind kind, const Operand& from, Range range) noexcept { stores_.fill(slot(kind), from, range); }
  void fill(ChannelKind kind, const NodeVectors& from, int node, Range range) noexcept {
    stores_.fill(slot(kind), from, node, range);
  }
  void fill(ChannelKind kind, const std::byte* data, std::int64_t bytes, std::int64_t at = 0) noexcept {
    stores_.fill(slot(kind) + at, data, bytes);
  }
  /// `reader`: a local rank, or `everyone`: all but this one.
  void publish(ChannelKind kind, int reader = everyone) noexcept;

  /// The next piece of a neighbor's channel; nullptr if it is not published yet. It stays valid until take().
  const std::byte* arrived(int from, ChannelKind kind) const noexcept;
  void take(int from, ChannelKind kind) noexcept;
  /// Skips pieces that other ranks read.
  void skip(int from, ChannelKind kind, std::int64_t pieces = 1) noexcept {
    cursor(from, kind) += static_cast<std::uint64_t>(pieces);
  }

 private:
  using Counter = std::atomic<std::uint64_t>;
  std::size_t ring(int rank, ChannelKind kind) const noexcept {
    return static_cast<std::size_t>(2 * rank + static_cast<int>(kind));
  }
  Counter& published(std::size_t ring) const noexcept;
  Counter& taken(std::size_t ring, int reader) const noexcept;
  std::byte* slot_of(std::size_t ring, std::uint64_t piece) const noexcept;
  std::uint64_t& cursor(int from, ChannelKind kind) noexcept { return cursors_[ring(from, kind)]; }

  std::byte* memory_ = nullptr;
  ChannelShape shape_;
  int rank_ = 0;
  std::vector<std::uint64_t> cursors_;  ///< by ring: the next piece to read or, of this rank's rings, to fill
  int readers_[2][ChannelShape::slots] = {};
  SlotStores stores_;
};

}  // namespace bestride::inline collectives
