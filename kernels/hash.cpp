// SPDX-License-Identifier: Apache-2.0
#include "kernels/hash.hpp"

// All of it static in this file: no symbol of xxHash in the library, none needed.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bestride {

std::uint64_t content_hash(const void* content, std::int64_t bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(content, bytes > 0 ? static_cast<std::size_t>(bytes) : 0, seed);
}

}  // namespace bestride
