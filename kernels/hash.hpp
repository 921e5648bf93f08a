// SPDX-License-Identifier: Apache-2.0
#pragma once
// A hash of content, for finding content that may be equal; a byte comparison must confirm it.
#include <cstdint>

namespace bestride::inline kernels {

/// XXH3, 64 bits. The result depends only on bytes and seed, on all machines of one byte order, at any alignment. Not
/// secure against an adversary. Thread-safe, no allocation. `bytes` >= 0.
std::uint64_t content_hash(const void* content, std::int64_t bytes, std::uint64_t seed = 0) noexcept;

}  // namespace bestride::inline kernels
