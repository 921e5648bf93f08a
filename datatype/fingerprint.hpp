// SPDX-License-Identifier: Apache-2.0
#pragma once
// The content fingerprint of a byte sequence: H = sum over packed bytes k of offset(k) * r^k, modulo the prime 2^61 -
// 1, at two fixed points r. It depends only on the order of the bytes, not on how runs are split or loops are nested.
// Two different sequences of N bytes have equal values at one point with probability at most N / 2^61 (a polynomial of
// degree below N has fewer than N roots), and at both with at most (N / 2^61)^2: 2^-82 for one mebibyte. Every node
// kind has a closed form, so a loop of n iterations takes O(log n). Alternative considered: hashing the expanded list
// of blocks, which costs one step for each block.
#include <cstdint>
#include <span>

#include "datatype/layout.hpp"

namespace bestride::inline datatype {

/// H of `length` contiguous bytes at offset 0.
Fingerprint block_fingerprint(std::int64_t length) noexcept;
/// H of the same `size` bytes moved by `shift`.
Fingerprint moved(const Fingerprint& content, std::int64_t size, std::int64_t shift) noexcept;
/// H of `count` copies of a body of `size` bytes; copy i is moved by i * stride.
Fingerprint repeated(const Fingerprint& body, std::int64_t size, std::int64_t count, std::int64_t stride) noexcept;
/// H of blocks in order. If `lengths` is empty, all blocks have the length `block_length`.
Fingerprint list_fingerprint(std::span<const std::int64_t> offsets, std::span<const std::int64_t> lengths,
                             std::int64_t block_length) noexcept;

/// Computes H of a sequence, one part after the other.
class FingerprintSequence {
 public:
  /// Appends `size` bytes whose fingerprint is `part` (already moved to their offset).
  void append(const Fingerprint& part, std::int64_t size) noexcept;
  const Fingerprint& value() const noexcept { return total_; }

 private:
  Fingerprint total_;
  Fingerprint power_{1, 1};
};

}  // namespace bestride::inline datatype
