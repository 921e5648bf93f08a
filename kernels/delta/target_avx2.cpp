// SPDX-License-Identifier: Apache-2.0
// Deltas with AVX2: eight words at a time through a table of byte shuffles.
#include <immintrin.h>

#include "kernels/delta/kernel_table.hpp"

namespace bestride::inline kernels::delta {
namespace {

/// For each mask of eight words: the bytes to compact, and for each position the collected byte that belongs there.
struct Shuffles {
  alignas(16) Byte compact[256][16];
  alignas(16) Byte expand[256][16];
};

constexpr Shuffles make_shuffles() {
  Shuffles made = {};
  for (int mask = 0; mask < 256; ++mask) {
    int collected = 0;
    for (int word = 0; word < 8; ++word) {
      const bool taken = mask >> word & 1;
      for (int byte = 0; byte < 2; ++byte) {
        if (taken) made.compact[mask][2 * collected + byte] = static_cast<Byte>(2 * word + byte);
        made.expand[mask][2 * word + byte] = taken ? static_cast<Byte>(2 * collected + byte) : 0x80;
      }
      collected += taken;
    }
  }
  return made;
}

constexpr Shuffles shuffles = make_shuffles();

[[gnu::always_inline]] inline __m256i load_256(const Byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
[[gnu::always_inline]] inline __m128i load_128(const Byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}

/// One bit per word that is equal, for 32 words.
[[gnu::always_inline]] inline std::uint64_t equal_words(const Byte* a, const Byte* b) {
  const __m256i low = _mm256_cmpeq_epi16(load_256(a), load_256(b));
  const __m256i high = _mm256_cmpeq_epi16(load_256(a + 32), load_256(b + 32));
  // The pack instruction works within 128-bit halves, so a permute is needed.
  const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(low, high), 0xd8);
  return static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes));
}

std::uint64_t compare(const Byte* older, const Byte* newer, std::uint64_t* masks) {
  std::uint64_t map = 0;
  for (int chunk = 0; chunk < group_chunks; ++chunk, older += chunk_bytes, newer += chunk_bytes) {
    const std::uint64_t mask = ~(equal_words(older, newer) | equal_words(older + 64, newer + 64) << 32);
    masks[chunk] = mask;
    map |= std::uint64_t{mask != 0} << chunk;
  }
  return map;
}

Byte* compact(const Byte* group, const std::uint64_t* masks, Byte* words) {
  for (int chunk = 0; chunk < group_chunks; ++chunk, group += chunk_bytes) {
    if (masks[chunk] == 0) continue;
    for (int eight = 0; eight < 8; ++eight) {
      const unsigned mask = masks[chunk] >> (8 * eight) & 255;
      const __m128i taken = _mm_shuffle_epi8(load_128(group + 16 * eight), load_128(shuffles.compact[mask]));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(words), taken);
      words += 2 * _mm_popcnt_u32(mask);
    }
  }
  return words;
}

void expand(Byte* group, const std::uint64_t* masks, const Byte* words) {
  const __m128i bits = _mm_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128);
  for (int chunk = 0; chunk < group_chunks; ++chunk, group += chunk_bytes) {
    if (masks[chunk] == 0) continue;
    for (int eight = 0; eight < 8; ++eight) {
      const unsigned mask = masks[chunk] >> (8 * eight) & 255;
      const __m128i placed = _mm_shuffle_epi8(load_128(words), load_128(shuffles.expand[mask]));
      const __m128i changed = _mm_cmpeq_epi16(_mm_and_si128(_mm_set1_epi16(static_cast<short>(mask)), bits), bits);
      Byte* const at = group + 16 * eight;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(at), _mm_blendv_epi8(load_128(at), placed, changed));
      words += 2 * _mm_popcnt_u32(mask);
    }
  }
}

}  // namespace

const DeltaKernels& avx2_delta_kernels() {
  static constexpr DeltaKernels table = {compare, compact, expand};
  return table;
}

}  // namespace bestride::inline kernels::delta
