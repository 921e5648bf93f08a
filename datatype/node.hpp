// SPDX-License-Identifier: Apache-2.0
#pragma once
// Node constructors. They compute the derived members (size, range, blocks, fingerprint) and refuse values beyond the
// 62-bit range. They apply no rules of the canonical form; datatype/canonical.cpp does.
#include <cstdint>
#include <vector>

#include "datatype/build.hpp"

namespace bestride::inline datatype {

inline constexpr std::int64_t offset_limit = std::int64_t{1} << 61;

/// x + y and x * y; false if the result leaves [-2^61, 2^61]. Within these limits the fingerprint distinguishes any two
/// offsets.
inline bool sum(std::int64_t x, std::int64_t y, std::int64_t* out) noexcept {
  return !__builtin_add_overflow(x, y, out) && *out >= -offset_limit && *out <= offset_limit;
}
inline bool product(std::int64_t x, std::int64_t y, std::int64_t* out) noexcept {
  return !__builtin_mul_overflow(x, y, out) && *out >= -offset_limit && *out <= offset_limit;
}

// Each returns nullptr on overflow. The parts must be normalized (first packed byte at 0) and not empty.
NodePtr block_node(std::int64_t length);
NodePtr loop_node(NodePtr body, std::int64_t count, std::int64_t stride);
NodePtr sequence_node(std::vector<Item> items);
NodePtr list_node(std::vector<std::int64_t> offsets, std::vector<std::int64_t> lengths, std::int64_t block_length);

/// True if both have the same bytes in the same order.
inline bool same_content(const Node& x, const Node& y) noexcept { return x.size == y.size && x.content == y.content; }

}  // namespace bestride::inline datatype
