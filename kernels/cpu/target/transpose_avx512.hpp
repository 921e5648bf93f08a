// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transposes of 4-, 8-, 16- and 32-byte blocks in registers: squares of full lines in both buffers, so that loads and
// stores are whole lines. Distributing single blocks (transpose.hpp) needs 64/width times as many stores.
#include <immintrin.h>

#include "kernels/cpu/target/record_avx512.hpp"
#include "kernels/cpu/target/transpose.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

/// Transposes 4 x 4 quarters: quarter j of v[i] <-> quarter i of v[j].
[[gnu::always_inline]] inline void transpose_quarters(__m512i& a, __m512i& b, __m512i& c, __m512i& d) {
  const __m512i ab_low = _mm512_shuffle_i64x2(a, b, 0x44), ab_high = _mm512_shuffle_i64x2(a, b, 0xEE);
  const __m512i cd_low = _mm512_shuffle_i64x2(c, d, 0x44), cd_high = _mm512_shuffle_i64x2(c, d, 0xEE);
  a = _mm512_shuffle_i64x2(ab_low, cd_low, 0x88);
  b = _mm512_shuffle_i64x2(ab_low, cd_low, 0xDD);
  c = _mm512_shuffle_i64x2(ab_high, cd_high, 0x88);
  d = _mm512_shuffle_i64x2(ab_high, cd_high, 0xDD);
}

/// Transposes N = 64 / W lines of N blocks of W bytes in place.
template <int W>
[[gnu::always_inline]] inline void transpose_square(__m512i* v) {
  if constexpr (W == 32) {
    const __m512i low = _mm512_shuffle_i64x2(v[0], v[1], 0x44);
    v[1] = _mm512_shuffle_i64x2(v[0], v[1], 0xEE);
    v[0] = low;
  } else if constexpr (W == 16) {
    transpose_quarters(v[0], v[1], v[2], v[3]);
  } else if constexpr (W == 8) {
    __m512i even[4], odd[4];
    for (int i = 0; i < 4; ++i) {
      even[i] = _mm512_unpacklo_epi64(v[2 * i], v[2 * i + 1]);
      odd[i] = _mm512_unpackhi_epi64(v[2 * i], v[2 * i + 1]);
    }
    transpose_quarters(even[0], even[1], even[2], even[3]);
    transpose_quarters(odd[0], odd[1], odd[2], odd[3]);
    for (int i = 0; i < 4; ++i) {
      v[2 * i] = even[i];
      v[2 * i + 1] = odd[i];
    }
  } else {
    static_assert(W == 4);
    __m512i fours[4][4];  // [k][g]: quarter q has word 4 q + k of the lines 4 g .. 4 g + 3
    for (int g = 0; g < 4; ++g) {
      const __m512i low_ab = _mm512_unpacklo_epi32(v[4 * g], v[4 * g + 1]),
                    high_ab = _mm512_unpackhi_epi32(v[4 * g], v[4 * g + 1]);
      const __m512i low_cd = _mm512_unpacklo_epi32(v[4 * g + 2], v[4 * g + 3]),
                    high_cd = _mm512_unpackhi_epi32(v[4 * g + 2], v[4 * g + 3]);
      fours[0][g] = _mm512_unpacklo_epi64(low_ab, low_cd);
      fours[1][g] = _mm512_unpackhi_epi64(low_ab, low_cd);
      fours[2][g] = _mm512_unpacklo_epi64(high_ab, high_cd);
      fours[3][g] = _mm512_unpackhi_epi64(high_ab, high_cd);
    }
    for (int k = 0; k < 4; ++k) {
      transpose_quarters(fours[k][0], fours[k][1], fours[k][2], fours[k][3]);
      for (int q = 0; q < 4; ++q) v[4 * q + k] = fours[k][q];
    }
  }
}

template <int W, bool packing>
void transpose_squares(const Piece& piece, Byte* packed, Byte* user) {
  constexpr Int tile = 64 / W;
  const Int stride = piece.stride;
  const Int row_bytes = piece.count * W;
  Int row = rows_to_line(piece, user, W);
  scatter_lines<WordMove<W>, packing>(piece, packed, user, 0, row, 0);
  for (; row + tile <= piece.rows; row += tile) {
    Int column = 0;
    for (; column + tile <= piece.count; column += tile) {
      Byte* lines = user + column * stride + row * W;
      Byte* rows = packed + row * row_bytes + column * W;
      __m512i square[tile];
      for (Int i = 0; i < tile; ++i)
        square[i] = packing ? load_512(lines + i * stride) : load_512(rows + i * row_bytes);
      transpose_square<W>(square);
      for (Int i = 0; i < tile; ++i) {
        if constexpr (packing)
          store_512(rows + i * row_bytes, square[i]);
        else
          store_512(lines + i * stride, square[i]);
      }
    }
    scatter_lines<WordMove<W>, packing>(piece, packed, user, row, tile, column);
  }
  if (row < piece.rows) scatter_lines<WordMove<W>, packing>(piece, packed, user, row, piece.rows - row, 0);
}

template <int W>
constexpr Kernels transpose_square_kernels(const char* name) {
  return {name, transpose_squares<W, true>, transpose_squares<W, false>};
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
