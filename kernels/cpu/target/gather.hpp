// SPDX-License-Identifier: Apache-2.0
#pragma once
// 4- and 8-byte blocks at any regular stride, if 16 strides fit 31 bits: one vector gather, one full store. On Zen the
// loads of a gather cost as much as scalar loads; the gain is fewer stores. Packing only: a scatter is slower than word
// stores (0.9x).
#include <immintrin.h>

#include "kernels/cpu/target/moves.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

#if defined(__AVX512F__)

template <int W>
void gather_pack(const Piece& piece, Byte* packed, Byte* user) {
  constexpr Int step = 64 / W;
  const int stride = static_cast<int>(piece.stride);
  const __m512i lanes = _mm512_mullo_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                           _mm512_set1_epi32(stride));
  for (Int row = 0; row < piece.rows; ++row) {
    const Byte* at = user + row * piece.row_stride;
    Int left = piece.count;
    for (; left >= step; left -= step) {
      if constexpr (W == 4)
        _mm512_storeu_si512(packed, _mm512_i32gather_epi32(lanes, at, 1));
      else
        _mm512_storeu_si512(packed, _mm512_i32gather_epi64(_mm512_castsi512_si256(lanes), at, 1));
      packed += 64;
      at += step * piece.stride;
    }
    for (; left > 0; --left) {
      WordMove<W>::move(packed, at, W);
      packed += W;
      at += piece.stride;
    }
  }
}

#else

template <int W>
void gather_pack(const Piece& piece, Byte* packed, Byte* user) {
  constexpr Int step = 32 / W;
  const int stride = static_cast<int>(piece.stride);
  const __m256i lanes = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(stride));
  for (Int row = 0; row < piece.rows; ++row) {
    const Byte* at = user + row * piece.row_stride;
    Int left = piece.count;
    for (; left >= step; left -= step) {
      __m256i words;
      if constexpr (W == 4)
        words = _mm256_i32gather_epi32(reinterpret_cast<const int*>(at), lanes, 1);
      else
        words = _mm256_i32gather_epi64(reinterpret_cast<const long long*>(at), _mm256_castsi256_si128(lanes), 1);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(packed), words);
      packed += 32;
      at += step * piece.stride;
    }
    for (; left > 0; --left) {
      WordMove<W>::move(packed, at, W);
      packed += W;
      at += piece.stride;
    }
  }
}

#endif

/// 16-byte blocks: four (AVX-512) or two (AVX2) are assembled in a register and written by one full store.
inline void gather16_pack(const Piece& piece, Byte* packed, Byte* user) {
  const Int stride = piece.stride;
  for (Int row = 0; row < piece.rows; ++row) {
    const Byte* at = user + row * piece.row_stride;
    const auto block = [&](Int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i * stride)); };
    Int left = piece.count;
    for (; left >= 4; left -= 4) {
      const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(block(0)), block(1), 1);
      const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(block(2)), block(3), 1);
#if defined(__AVX512F__)
      _mm512_storeu_si512(packed, _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
#else
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(packed), low);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(packed + 32), high);
#endif
      packed += 64;
      at += 4 * stride;
    }
    for (; left > 0; --left) {
      WordMove<16>::move(packed, at, 16);
      packed += 16;
      at += stride;
    }
  }
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
