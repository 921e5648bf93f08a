// SPDX-License-Identifier: Apache-2.0
#pragma once
// OwnBlock: what this rank contributes to a call, looked at as the bytes that are kept of it: its hash, whether it is what it gave before,
// and a sample of it that tells what it resembles.
#include <cstddef>
#include <cstdint>

#include "collectives/strings.hpp"

namespace bestride {

class OwnBlock {
 public:
  /// Hashed and compared in steps of so many bytes at most, however the block lies in memory.
  static constexpr std::int64_t step = 1 << 20;
  /// Words of 16 bits in a sample: enough to tell 1/32 of equal ones from the 1/500 that weights of different layers have by chance.
  static constexpr int sample_words = 512;

  std::int64_t bytes() const noexcept { return bytes_; }
  std::int64_t steps() const noexcept { return pieces_in(bytes_, step_); }
  /// The hash of steps up to this one, of the hash of those before it.
  std::uint64_t hash_on(std::uint64_t before, std::int64_t index) const noexcept;
  /// The step's bytes are those of `older`, a whole block.
  bool equals(const std::byte* older, std::int64_t index) const noexcept;

  /// How many words a sample of this block has. 0: it is not looked at for what it resembles.
  virtual int samples() const noexcept { return 0; }
  /// Words of it, from places that follow from its size alone.
  virtual void sample(std::uint16_t*) const noexcept {}

 protected:
  explicit OwnBlock(std::int64_t bytes, std::int64_t step_bytes = step) noexcept : bytes_(bytes), step_(step_bytes) {}
  ~OwnBlock() = default;
  /// Where the bytes of one step are, until the next is asked for.
  virtual const std::byte* read(Range range) const noexcept = 0;

 private:
  const std::int64_t bytes_, step_;
};

/// The bytes themselves.
class OwnBytes final : public OwnBlock {
 public:
  /// `strings` and `room` (of `step` bytes) outlive this.
  OwnBytes(const NodeStrings& strings, int node, int local_rank, std::byte* room) noexcept
      : OwnBlock(strings.part(node, local_rank).bytes()), strings_(strings), node_(node), begin_(strings.part(node, local_rank).first), room_(room) {}

  int samples() const noexcept override;
  void sample(std::uint16_t* words) const noexcept override;

 private:
  const std::byte* read(Range range) const noexcept override;

  const NodeStrings& strings_;
  const int node_;
  const std::int64_t begin_;  ///< in the node's string
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
