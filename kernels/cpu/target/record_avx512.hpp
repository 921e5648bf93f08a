// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records: byte patterns within 64 bytes that repeat at a stride: arrays of structs, and narrow blocks at small
// strides, several records at a time (Piece::group). Packing: masked load, vpcompressb in a register, full store whose
// excess bytes are overwritten by the next store. Unpacking: vpexpandb, masked store. Alternative considered:
// vpcompressb directly to memory, which is microcoded on Zen 4 and 5.
#include <immintrin.h>

#include "kernels/cpu/target/moves.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

[[gnu::always_inline]] inline __mmask64 first_bytes(Int n) { return n >= 64 ? ~__mmask64{0} : (__mmask64{1} << n) - 1; }

[[gnu::always_inline]] inline __m512i load_512(const Byte* from) { return _mm512_loadu_si512(from); }
[[gnu::always_inline]] inline void store_512(Byte* to, __m512i value) { _mm512_storeu_si512(to, value); }

inline void record_pack(const Piece& piece, Byte* packed, Byte* user) {
  const Int width = piece.width, group = piece.group;
  const Int group_bytes = width * group;
  const Int group_stride = piece.stride * group;
  const __mmask64 mask = piece.mask, group_mask = piece.group_mask;
  const Byte* const end = packed + piece.rows * piece.count * width;
  for (Int row = 0; row < piece.rows; ++row) {
    const Byte* at = user + row * piece.row_stride;
    Int left = piece.count;
    // Full stores while at least 64 bytes of the whole piece are left; then exact stores.
    for (; left >= group && end - packed >= 64; left -= group) {
      store_512(packed, _mm512_maskz_compress_epi8(group_mask, _mm512_maskz_loadu_epi8(group_mask, at)));
      packed += group_bytes;
      at += group_stride;
    }
    for (; left >= group; left -= group) {
      _mm512_mask_storeu_epi8(packed, first_bytes(group_bytes),
                              _mm512_maskz_compress_epi8(group_mask, _mm512_maskz_loadu_epi8(group_mask, at)));
      packed += group_bytes;
      at += group_stride;
    }
    for (; left > 0; --left) {
      _mm512_mask_storeu_epi8(packed, first_bytes(width),
                              _mm512_maskz_compress_epi8(mask, _mm512_maskz_loadu_epi8(mask, at)));
      packed += width;
      at += piece.stride;
    }
  }
}

inline void record_unpack(const Piece& piece, Byte* packed, Byte* user) {
  const Int width = piece.width, group = piece.group;
  const Int group_bytes = width * group;
  const Int group_stride = piece.stride * group;
  const __mmask64 mask = piece.mask, group_mask = piece.group_mask;
  const Byte* const end = packed + piece.rows * piece.count * width;
  for (Int row = 0; row < piece.rows; ++row) {
    Byte* at = user + row * piece.row_stride;
    Int left = piece.count;
    for (; left >= group && end - packed >= 64; left -= group) {
      _mm512_mask_storeu_epi8(at, group_mask, _mm512_maskz_expand_epi8(group_mask, load_512(packed)));
      packed += group_bytes;
      at += group_stride;
    }
    for (; left >= group; left -= group) {
      _mm512_mask_storeu_epi8(
          at, group_mask,
          _mm512_maskz_expand_epi8(group_mask, _mm512_maskz_loadu_epi8(first_bytes(group_bytes), packed)));
      packed += group_bytes;
      at += group_stride;
    }
    for (; left > 0; --left) {
      _mm512_mask_storeu_epi8(at, mask,
                              _mm512_maskz_expand_epi8(mask, _mm512_maskz_loadu_epi8(first_bytes(width), packed)));
      packed += width;
      at += piece.stride;
    }
  }
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
