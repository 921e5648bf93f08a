// SPDX-License-Identifier: Apache-2.0
#pragma once
// OwnBlock: this rank's contribution to a call, as the bytes that the cache keeps: its hash, its comparison with
// earlier contributions, and a sample for finding similar ones.
#include <cstddef>
#include <cstdint>

#include "collectives/core/node_vectors.hpp"

namespace bestride::inline collectives {

class OwnBlock {
 public:
  /// Hash and comparison proceed in steps of at most this many bytes, however the block lies in memory.
  static constexpr std::int64_t step = 1 << 20;
  /// 16-bit words in a sample. They are enough to distinguish 1/32 of equal words from the 1/500 that weights of
  /// different layers share by chance.
  static constexpr int sample_words = 512;

  std::int64_t bytes() const noexcept { return bytes_; }
  std::int64_t steps() const noexcept { return pieces_in(bytes_, step_); }
  /// The hash up to and including this step; `before` is the hash of the steps before it.
  std::uint64_t hash_on(std::uint64_t before, std::int64_t index) const noexcept;
  /// True if the bytes of this step equal those of `older`, a whole block.
  bool equals(const std::byte* older, std::int64_t index) const noexcept;

  /// The number of words in a sample of this block. 0: it is not compared for similarity.
  virtual int samples() const noexcept { return 0; }
  /// Writes the sampled words. Their places depend on the size of the block only.
  virtual void sample(std::uint16_t*) const noexcept {}

 protected:
  explicit OwnBlock(std::int64_t bytes, std::int64_t step_bytes = step) noexcept : bytes_(bytes), step_(step_bytes) {}
  ~OwnBlock() = default;
  /// The bytes of one step; valid until the next call.
  virtual const std::byte* read(Range range) const noexcept = 0;

 private:
  const std::int64_t bytes_, step_;
};

/// The bytes themselves.
class OwnBytes final : public OwnBlock {
 public:
  /// `vectors` and `buffer` (of `step` bytes) outlive this object.
  OwnBytes(const NodeVectors& vectors, int node, int local_rank, std::byte* buffer) noexcept
      : OwnBlock(vectors.part(node, local_rank).length()),
        vectors_(vectors),
        node_(node),
        begin_(vectors.part(node, local_rank).first),
        buffer_(buffer) {}

  int samples() const noexcept override;
  void sample(std::uint16_t* words) const noexcept override;

 private:
  const std::byte* read(Range range) const noexcept override;

  const NodeVectors& vectors_;
  const int node_;
  const std::int64_t begin_;  ///< in the node's vector
  std::byte* buffer_;
};

/// A pseudo-random number for each i, the same on every machine (the finalizer of SplitMix64). Sample places follow no
/// regular pattern.
constexpr std::uint64_t scattered(std::uint64_t i) noexcept {
  i = (i + 1) * 0x9E3779B97F4A7C15u;
  i = (i ^ (i >> 30)) * 0xBF58476D1CE4E5B9u;
  i = (i ^ (i >> 27)) * 0x94D049BB133111EBu;
  return i ^ (i >> 31);
}

}  // namespace bestride::inline collectives
