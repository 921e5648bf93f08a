// SPDX-License-Identifier: Apache-2.0
#pragma once
// Channels: bytes handed from one rank to others of its node, through memory that all of them share.
//
// Each rank has two channels, rings of slots that only it fills: one for what it has itself, one for what came over the wire, so that a
// piece that is late never holds up one that is there. All ranks work out alike which pieces a channel carries, in which
// order, and who reads them; so a piece is its bytes and nothing else. A slot is filled again when those who read it have taken it.
// Counters only grow and go on over collectives: a rank may be ahead of its neighbours by as much as there are slots.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bestride {

enum class Stream : int {
  own,      ///< what the rank had when the collective began, in the order of its pieces
  arrived,  ///< what it received, or worked out
};

/// How the memory is divided: the same on all ranks of a node.
struct ChannelShape {
  static constexpr int slots = 4;
  int ranks = 1;                  ///< of the node
  std::int64_t slot_bytes = 0;    ///< a multiple of 4096

  std::size_t counters_bytes() const noexcept;
  std::size_t bytes() const noexcept;
};

/// One rank's view. Used by one thread at a time.
class Channels {
 public:
  static constexpr int everyone = -1;

  Channels() = default;
  /// `memory`: shape.bytes(), shared, zero before the first use, aligned to 64; outlives this. May throw std::bad_alloc.
  Channels(std::byte* memory, const ChannelShape& shape, int local_rank);

  int ranks() const noexcept { return shape_.ranks; }
  std::int64_t slot_bytes() const noexcept { return shape_.slot_bytes; }

  /// The next slot may be filled.
  bool vacant(Stream stream) const noexcept;
  /// The next slot: slot_bytes(), the caller's until publish(). Only while vacant().
  std::byte* slot(Stream stream) const noexcept;
  /// `reader`: a local rank, or everyone but this one.
  void publish(Stream stream, int reader = everyone) noexcept;

  /// The next piece of a neighbour's channel, or nullptr: not there yet. It stays until take().
  const std::byte* arrived(int from, Stream stream) const noexcept;
  void take(int from, Stream stream) noexcept;
  /// Passes over pieces that others read.
  void skip(int from, Stream stream, std::int64_t pieces = 1) noexcept { cursor(from, stream) += static_cast<std::uint64_t>(pieces); }

 private:
  using Counter = std::atomic<std::uint64_t>;
  std::size_t ring(int rank, Stream stream) const noexcept { return static_cast<std::size_t>(2 * rank + static_cast<int>(stream)); }
  Counter& published(std::size_t ring) const noexcept;
  Counter& taken(std::size_t ring, int reader) const noexcept;
  std::byte* slot_of(std::size_t ring, std::uint64_t piece) const noexcept;
  std::uint64_t& cursor(int from, Stream stream) noexcept { return cursors_[ring(from, stream)]; }

  std::byte* memory_ = nullptr;
  ChannelShape shape_;
  int rank_ = 0;
  std::vector<std::uint64_t> cursors_;  ///< by ring: the next piece to read; of the own rings, to fill
  int readers_[2][ChannelShape::slots] = {};
};

}  // namespace bestride
