// SPDX-License-Identifier: Apache-2.0
#pragma once
// A hash of content, for finding what may be equal; whether it is, bytes decide.
#include <cstdint>

namespace bestride {

/// XXH3, 64 bits: the same for the same bytes and seed on every machine of one byte order, at any alignment. Not against an adversary.
/// Thread-safe, no allocation. `bytes` at least 0.
std::uint64_t content_hash(const void* content, std::int64_t bytes, std::uint64_t seed = 0) noexcept;

}  // namespace bestride
