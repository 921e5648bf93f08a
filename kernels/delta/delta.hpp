// SPDX-License-Identifier: Apache-2.0
#pragma once
// Delta: content encoded as its difference from older content that sender and receiver both have. Exact: a bitmap of
// the changed words, and those words.
//
// A word is 16 bits, because typical repeated content is weights in bfloat16 or float16, and an optimizer step leaves
// most of them unchanged. A float32 of which only the low half changed costs one word.
//
// Bytes, where w is the number of changed words:
//   at most bytes / 16 + 2 w + 16, wherever they are; unchanged content takes 4 bytes
//   changed chunks of 64 words cost 8 bytes each in addition to their words, and 8 for each 64 chunks with any change
//
// The stream is a sequence of runs of groups. A group is 64 chunks (8 KiB of content); the last group and the last
// chunk may be short. All integers are in native byte order, at any alignment:
//   run:    32 bits: kind in the upper 2 bits, number of groups below; then those groups
//   kind 0: unchanged: the groups have no bytes
//   kind 1: sparse: 64-bit map of the changed chunks, then as `full` for these chunks only
//   kind 2: full: a 64-bit mask of the changed words for each chunk, then the changed words of all chunks
// Content of odd length is extended by a zero byte. A group is sparse only if this saves the bytes of two runs, which
// gives the bound. Alternative considered: one map for all chunks at the start, which adds bytes / 1024 to the bound if
// every chunk has changed.
//
// Pure functions: thread-safe, no allocation, any alignment, at most 2^62 bytes. Arguments must not overlap, except
// that `older` and `newer` may be the same.
#include <cstdint>
#include <cstring>

#include "kernels/isa.hpp"

namespace bestride::inline kernels::delta {

/// Returned by encode() if sending the plain bytes is better.
inline constexpr std::int64_t dense = -1;

/// True if two contents are equal bit by bit.
inline bool equal(const void* a, const void* b, std::int64_t bytes) noexcept {
  return bytes <= 0 || std::memcmp(a, b, static_cast<std::size_t>(bytes)) == 0;
}

/// Upper bound of the size that encode() returns for content of this size.
std::int64_t max_encoded_bytes(std::int64_t bytes) noexcept;

/// Writes the delta that turns `older` into `newer` and returns its size, or `dense` if the size exceeds `limit` bytes
/// (returned as soon as this is known). `out` has room for `limit` bytes, and no more are written; after `dense` its
/// content is unspecified.
std::int64_t encode(const void* older, const void* newer, std::int64_t bytes, void* out, std::int64_t limit,
                    Isa isa = chosen_isa()) noexcept;

/// Turns the older content into the newer one, in place. No other thread may access the content: unchanged words next
/// to changed ones may be rewritten with their own values. Returns false if `encoded` is not a delta for content of
/// this size. In this case nothing outside `content` was written, nothing outside `encoded` was read, and the content
/// is unspecified.
bool apply(const void* encoded, std::int64_t size, void* content, std::int64_t bytes, Isa isa = chosen_isa()) noexcept;

}  // namespace bestride::inline kernels::delta
