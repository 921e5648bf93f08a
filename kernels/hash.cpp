// SPDX-License-Identifier: Apache-2.0
#include "kernels/hash.hpp"

// Everything is static in this file, so the library neither exports nor needs a symbol of xxHash.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace bestride::inline kernels {

std::uint64_t content_hash(const void* content, std::int64_t bytes, std::uint64_t seed) noexcept {
  return XXH3_64bits_withSeed(content, bytes > 0 ? static_cast<std::size_t>(bytes) : 0, seed);
}

}  // namespace bestride::inline kernels
