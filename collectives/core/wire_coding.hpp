// SPDX-License-Identifier: Apache-2.0
#pragma once
// WireCoding: the coded form in which a node's partial result crosses the network. Inside a node, results are not
// coded.
#include <cstddef>
#include <cstdint>

namespace bestride::inline collectives {

/// Pure: the same input gives the same output on every rank. No allocation, no failure.
class WireCoding {
 public:
  /// Bytes that are coded together; a multiple of an element. Pieces are cut at its multiples, except for the last
  /// piece of a lane.
  std::int64_t block_bytes = 1;

  /// The coded size of a piece of `bytes`: at most block_bytes, or `bytes` if that is more.
  virtual std::int64_t coded_bytes(std::int64_t bytes) const noexcept = 0;
  /// Writes coded_bytes(bytes) to `coded`.
  virtual void encode(const std::byte* piece, std::int64_t bytes, std::byte* coded) const noexcept = 0;
  /// inout = coded OP inout; `bytes` is the size of `inout`.
  virtual void combine(const std::byte* coded, std::byte* inout, std::int64_t bytes) const noexcept = 0;

 protected:
  ~WireCoding() = default;
};

}  // namespace bestride::inline collectives
