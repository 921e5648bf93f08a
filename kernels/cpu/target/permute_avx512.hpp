// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every second word of 4, 8 or 16 bytes (stride = 2 blocks, positive): two full loads, one two-source permute, one full
// store. The loads include the gaps between the blocks, but never the gap after the last block of a row. Unpacking
// spreads half a line and stores it under a mask.
#include <immintrin.h>

#include "kernels/cpu/target/record_avx512.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

template <int W>
[[gnu::always_inline]] inline __m512i even_words() {
  if constexpr (W == 4)
    return _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  else if constexpr (W == 8)
    return _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
  else
    return _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13);
}

template <int W>
void permute_pack(const Piece& piece, Byte* packed, Byte* user) {
  constexpr Int step = 64 / W;
  const __m512i index = even_words<W>();
  for (Int row = 0; row < piece.rows; ++row) {
    const Byte* at = user + row * piece.row_stride;
    Int left = piece.count;
    for (; left > step; left -= step) {  // strictly greater: the gap after the last block must not be read
      const __m512i low = load_512(at), high = load_512(at + 64);
      if constexpr (W == 4)
        store_512(packed, _mm512_permutex2var_epi32(low, index, high));
      else
        store_512(packed, _mm512_permutex2var_epi64(low, index, high));
      packed += 64;
      at += 128;
    }
    for (; left > 0; --left) {
      WordMove<W>::move(packed, at, W);
      packed += W;
      at += 2 * W;
    }
  }
}

template <int W>
void permute_unpack(const Piece& piece, Byte* packed, Byte* user) {
  constexpr Int step = 32 / W;
  for (Int row = 0; row < piece.rows; ++row) {
    Byte* at = user + row * piece.row_stride;
    Int left = piece.count;
    for (; left >= step; left -= step) {
      const __m512i half = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(packed)));
      if constexpr (W == 4)
        _mm512_mask_storeu_epi32(at, 0x5555, _mm512_maskz_expand_epi32(0x5555, half));
      else if constexpr (W == 8)
        _mm512_mask_storeu_epi64(at, 0x55, _mm512_maskz_expand_epi64(0x55, half));
      else
        _mm512_mask_storeu_epi64(at, 0x33, _mm512_maskz_expand_epi64(0x33, half));
      packed += 32;
      at += 64;
    }
    for (; left > 0; --left) {
      WordMove<W>::move(at, packed, W);
      packed += W;
      at += 2 * W;
    }
  }
}

template <int W>
constexpr Kernels permute_kernels(const char* name) {
  return {name, permute_pack<W>, permute_unpack<W>};
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
