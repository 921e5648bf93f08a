// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every second word of 4, 8 or 16 bytes (stride = 2 blocks): two loads, one shuffle, one permute, one full store.
// Packing only: AVX2 has no cheap masked store for unpacking.
#include <immintrin.h>

#include "kernels/cpu/target/moves.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

template <int W>
void permute_pack(const Piece& piece, Byte* packed, Byte* user) {
  constexpr Int step = 32 / W;
  for (Int row = 0; row < piece.rows; ++row) {
    const Byte* at = user + row * piece.row_stride;
    Int left = piece.count;
    for (; left > step; left -= step) {  // strictly greater: the gap after the last block must not be read
      const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
      const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + 32));
      __m256i words;
      if constexpr (W == 4) {
        words = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high), 0x88));
        words = _mm256_permute4x64_epi64(words, 0xD8);
      } else if constexpr (W == 8) {
        words = _mm256_permute4x64_epi64(_mm256_unpacklo_epi64(low, high), 0xD8);
      } else {
        words = _mm256_permute2x128_si256(low, high, 0x20);
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(packed), words);
      packed += 32;
      at += 64;
    }
    for (; left > 0; --left) {
      WordMove<W>::move(packed, at, W);
      packed += W;
      at += 2 * W;
    }
  }
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
