// SPDX-License-Identifier: Apache-2.0
#pragma once
// stream: a copy that writes full cache lines with non-temporal stores, and unaligned ends with ordinary stores.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/cpu/target/moves.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

[[gnu::always_inline]] inline void stream_line(Byte* to, const Byte* from) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX2__)
  for (int i = 0; i < 64; i += 32)
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + i),
                        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i)));
#elif defined(__x86_64__)
  for (int i = 0; i < 64; i += 16)
    _mm_stream_si128(reinterpret_cast<__m128i*>(to + i), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i)));
#else
  store<64>(to, load<64>(from));
#endif
}

/// The caller must call stream_fence after all writes.
inline void stream(Byte* to, const Byte* from, Int size) {
  Int head = static_cast<Int>(-reinterpret_cast<std::uintptr_t>(to) & 63);
  if (head > size) head = size;
  __builtin_memcpy(to, from, static_cast<std::size_t>(head));
  Int i = head;
  for (; i + 64 <= size; i += 64) stream_line(to + i, from + i);
  __builtin_memcpy(to + i, from + i, static_cast<std::size_t>(size - i));
}

inline void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
