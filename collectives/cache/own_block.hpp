// SPDX-License-Identifier: Apache-2.0
#pragma once
// OwnBlock: what this rank contributes to a call, looked at as packed bytes: its hash, whether it is what it gave before, and a sample of it
// that tells what it resembles.
#include <cstddef>
#include <cstdint>

#include "collectives/strings.hpp"

namespace bestride {

class OwnBlock {
 public:
  /// Hashed and compared in steps of this many bytes, however the block lies in memory.
  static constexpr std::int64_t step = 1 << 20;
  /// Words of 16 bits in a sample: enough to tell 1/32 of equal ones from the 1/500 that weights of different layers have by chance.
  static constexpr int sample_words = 512;

  /// `strings` and `room` (of `step` bytes) outlive this.
  OwnBlock(const NodeStrings& strings, int node, int local_rank, std::byte* room) noexcept
      : strings_(strings), node_(node), range_(strings.part(node, local_rank)), room_(room) {}

  /// Of the own node's string.
  Range range() const noexcept { return range_; }
  std::int64_t steps() const noexcept { return pieces_in(range_.bytes(), step); }
  /// The hash of steps up to this one, of the hash of those before it.
  std::uint64_t hash_on(std::uint64_t before, std::int64_t index) const noexcept;
  /// The step's bytes are those of `older`, a whole block.
  bool equals(const std::byte* older, std::int64_t index) const noexcept;

  /// How many words a sample of this block has.
  int samples() const noexcept;
  /// Words of it, from places that follow from its size alone.
  void sample(std::uint16_t* words) const noexcept;

 private:
  const std::byte* bytes_of(std::int64_t index, std::int64_t* bytes) const noexcept;

  const NodeStrings& strings_;
  const int node_;
  const Range range_;
  std::byte* room_;
};

/// A number for each i that looks drawn by lot, the same everywhere: places of samples that no regular pattern falls in with (the finaliser
/// of SplitMix64).
constexpr std::uint64_t scattered(std::uint64_t i) noexcept {
  i = (i + 1) * 0x9E3779B97F4A7C15u;
  i = (i ^ (i >> 30)) * 0xBF58476D1CE4E5B9u;
  i = (i ^ (i >> 27)) * 0x94D049BB133111EBu;
  return i ^ (i >> 31);
}

}  // namespace bestride
