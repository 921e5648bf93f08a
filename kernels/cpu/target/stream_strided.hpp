// SPDX-License-Identifier: Apache-2.0
#pragma once
// Packs strided blocks with non-temporal stores: a full cache line is assembled in a register and then stored. The
// destination must be aligned to the block length; otherwise, and at the ends, ordinary stores are used. Not for
// 64-byte blocks, because an ordinary store then already writes a full line (streamed: 1.1-1.2x at 16 and 64 MiB).
// Packing only: the user's memory is usually in the cache.
#include <immintrin.h>

#include "kernels/cpu/target/permute_avx512.hpp"
#include "kernels/cpu/target/stream.hpp"
#include "kernels/cpu/target/strided.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

/// The next 64 packed bytes: 64 / W blocks at `stride`. 4- and 8-byte blocks only at stride = 2 blocks.
template <int W>
[[gnu::always_inline]] inline __m512i next_line(const Byte* at, Int stride) {
  if constexpr (W == 32) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + stride));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  } else if constexpr (W == 16) {
    const auto block = [&](Int i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i * stride)); };
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(block(0)), block(1), 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(block(2)), block(3), 1);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  } else if constexpr (W == 8) {
    return _mm512_permutex2var_epi64(load_512(at), even_words<8>(), load_512(at + 64));
  } else {
    return _mm512_permutex2var_epi32(load_512(at), even_words<4>(), load_512(at + 64));
  }
}

template <int W>
void stream_strided(const Piece& piece, Byte* packed, Byte* user) {
  constexpr Int step = 64 / W;
  if (reinterpret_cast<std::uintptr_t>(packed) % W != 0) return strided<WordMove<W>, true>(piece, packed, user);
  const Int stride = piece.stride;
  for (Int row = 0; row < piece.rows; ++row) {
    const Byte* at = user + row * piece.row_stride;
    Int left = piece.count;
    for (; left > 0 && (reinterpret_cast<std::uintptr_t>(packed) & 63) != 0; --left, packed += W, at += stride)
      WordMove<W>::move(packed, at, W);
    for (; left > step; left -= step) {  // strictly greater: the gap after a permute's last block must not be read
      _mm512_stream_si512(reinterpret_cast<__m512i*>(packed), next_line<W>(at, stride));
      packed += 64;
      at += step * stride;
    }
    for (; left > 0; --left, packed += W, at += stride) WordMove<W>::move(packed, at, W);
  }
  stream_fence();
}

/// For blocks so long that their unaligned ends do not matter.
inline void stream_wide(const Piece& piece, Byte* packed, Byte* user) {
  for (Int row = 0; row < piece.rows; ++row)
    for (Int i = 0; i < piece.count; ++i) {
      stream(packed, user + row * piece.row_stride + i * piece.stride, piece.width);
      packed += piece.width;
    }
  stream_fence();
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
