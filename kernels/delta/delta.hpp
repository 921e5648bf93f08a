// SPDX-License-Identifier: Apache-2.0
#pragma once
// Delta: content as its difference from older content that both sides hold. Exact: a bitmap of the words that changed, and those words.
//
// A word is 16 bits, because what is sent again and again is weights in bfloat16 or float16, where a step of the optimiser leaves most
// numbers as they are; a float32 whose low half alone changed costs one word.
//
// Bytes, with w the words that changed:
//   at most bytes / 16 + 2 w + 16, however they lie; unchanged content takes 4 bytes
//   changed chunks of 64 words cost 8 bytes each beside their words, and 8 for each 64 chunks that hold any
//
// The stream is a sequence of runs of groups; a group is 64 chunks (8 KiB of content), the last group and chunk of a content may be short.
// All integers in the machine's order, at any alignment:
//   run:    32 bits: kind in the upper 2 bits, number of groups below; then those groups
//   kind 0: unchanged: groups have no bytes
//   kind 1: sparse: 64-bit map of the changed chunks, then as full for these alone
//   kind 2: full: for each chunk a 64-bit mask of its changed words, then the changed words of all of them
// Content of odd length is taken with a zero byte at its end. A group is sparse only if that saves the bytes of two runs, which gives the bound.
// Alternative that lost: one map for all chunks in front: where every chunk has changed it adds bytes / 1024 to the bound.
//
// Pure functions: thread-safe, no allocation, any alignment, at most 2^62 bytes. Arguments must not overlap, except that `older` and
// `newer` may be the same.
#include <cstdint>
#include <cstring>

#include "kernels/isa.hpp"

namespace bestride::delta {

/// What encode() answers when plain bytes are the better message.
inline constexpr std::int64_t dense = -1;

/// Whether two contents are equal, bit by bit.
inline bool equal(const void* a, const void* b, std::int64_t bytes) noexcept {
  return bytes <= 0 || std::memcmp(a, b, static_cast<std::size_t>(bytes)) == 0;
}

/// Bytes encode() never exceeds for content of this size.
std::int64_t most_encoded_bytes(std::int64_t bytes) noexcept;

/// Writes what turns `older` into `newer` and returns its size; `dense` if that is more than `limit` bytes, as soon as it is known.
/// `out` has room for `limit` bytes and never gets more; after `dense` its content means nothing.
std::int64_t encode(const void* older, const void* newer, std::int64_t bytes, void* out, std::int64_t limit, Isa isa = chosen_isa()) noexcept;

/// Turns the older content into the newer one, in place. The caller has the content to himself: unchanged words beside changed ones may be
/// written with their own values. False: this is no delta for content of this size; nothing outside of the content was written or
/// outside of `encoded` read, and what the content holds means nothing.
bool apply(const void* encoded, std::int64_t size, void* content, std::int64_t bytes, Isa isa = chosen_isa()) noexcept;

}  // namespace bestride::delta
