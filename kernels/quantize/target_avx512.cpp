// SPDX-License-Identifier: Apache-2.0
// Quantization of 16 numbers at a time. The arithmetic is that of number.hpp, in float64 for every format: a vector of
// it costs less than the memory access for its input.
#define BESTRIDE_TARGET avx512
#include <immintrin.h>

#include "kernels/quantize/target/blocks.hpp"

namespace bestride::inline kernels {

namespace avx512 {
namespace {

struct Sixteen {
  static constexpr int width = 16;
  static constexpr Int stride = 64;

  struct Values {
    __m512d low, high;
  };

  template <NumberFormat format>
  [[gnu::always_inline]] static BitsOf<format> largest(const Byte* from, Int bytes) {
    __m512i most = _mm512_setzero_si512();
    for (Int i = 0; i < bytes; i += stride) {
      const __m512i bits = _mm512_loadu_si512(from + i);
      if constexpr (format == NumberFormat::float64)
        most = _mm512_max_epu64(most, _mm512_and_si512(bits, _mm512_set1_epi64(0x7fffffffffffffff)));
      else if constexpr (format == NumberFormat::float32)
        most = _mm512_max_epu32(most, _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff)));
      else
        most = _mm512_max_epu16(most, _mm512_and_si512(bits, _mm512_set1_epi16(0x7fff)));
    }
    if constexpr (format == NumberFormat::float64) return _mm512_reduce_max_epu64(most);
    if constexpr (format == NumberFormat::float32) return _mm512_reduce_max_epu32(most);
    const __m256i half = _mm256_max_epu16(_mm512_castsi512_si256(most), _mm512_extracti64x4_epi64(most, 1));
    const __m128i quarter = _mm_max_epu16(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    // The minimum of the complements gives the maximum.
    const int least = _mm_extract_epi16(_mm_minpos_epu16(_mm_xor_si128(quarter, _mm_set1_epi16(-1))), 0);
    return static_cast<BitsOf<format>>(~least);
  }

  [[gnu::always_inline]] static Values widened(__m512 floats) {
    return {_mm512_cvtps_pd(_mm512_castps512_ps256(floats)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(floats, 1))};
  }
  [[gnu::always_inline]] static __m512 narrowed(Values values) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(values.low)), _mm512_cvtpd_ps(values.high), 1);
  }

  template <NumberFormat format>
  [[gnu::always_inline]] static Values load(const Byte* from) {
    if constexpr (format == NumberFormat::float64) return {_mm512_loadu_pd(from), _mm512_loadu_pd(from + 64)};
    if constexpr (format == NumberFormat::float32) return widened(_mm512_loadu_ps(from));
    const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    if constexpr (format == NumberFormat::float16) return widened(_mm512_cvtph_ps(halves));
    return widened(_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16)));
  }

  template <NumberFormat format, CodeBits bits>
  [[gnu::always_inline]] static void encode(const Byte* from, const Encoder& encoder, Byte* to) {
    Values values = load<format>(from);
    if constexpr (format == NumberFormat::float64) {
      const __m512d lift = _mm512_set1_pd(encoder.lift);
      values = {_mm512_mul_pd(values.low, lift), _mm512_mul_pd(values.high, lift)};
    }
    const __m512d inverse = _mm512_set1_pd(encoder.inverse);
    const __m256i low = _mm512_cvtpd_epi32(_mm512_mul_pd(values.low, inverse));
    const __m256i high = _mm512_cvtpd_epi32(_mm512_mul_pd(values.high, inverse));
    const __m128i codes = _mm512_cvtepi32_epi8(_mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1));
    if constexpr (bits == CodeBits::int8) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), codes);
    } else {
      const __m128i pairs =
          _mm_maddubs_epi16(_mm_and_si128(codes, _mm_set1_epi8(15)), _mm_set1_epi16(0x1001));  // first + 16 * second
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm_cvtepi16_epi8(pairs));
    }
  }

  template <CodeBits bits>
  [[gnu::always_inline]] static Values decode(const Byte* from, const Decoder& decoder) {
    __m128i codes;
    if constexpr (bits == CodeBits::int8) {
      codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    } else {
      const __m128i pairs = _mm_cvtepu8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
      const __m128i nibbles = _mm_and_si128(_mm_or_si128(pairs, _mm_slli_epi16(pairs, 4)), _mm_set1_epi8(15));
      codes = _mm_sub_epi8(_mm_xor_si128(nibbles, _mm_set1_epi8(8)), _mm_set1_epi8(8));
    }
    const __m512i wide = _mm512_cvtepi8_epi32(codes);
    const __m512d step = _mm512_set1_pd(decoder.step);
    return {_mm512_mul_pd(_mm512_cvtepi32_pd(_mm512_castsi512_si256(wide)), step),
            _mm512_mul_pd(_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(wide, 1)), step)};
  }

  [[gnu::always_inline]] static __m512d lowered(__m512d values, const Decoder& decoder) {
    values = _mm512_mul_pd(values, _mm512_set1_pd(decoder.lower));
    // If both operands are zeros, these return the second one.
    return _mm512_max_pd(_mm512_set1_pd(-decoder.largest), _mm512_min_pd(_mm512_set1_pd(decoder.largest), values));
  }

  template <NumberFormat format>
  [[gnu::always_inline]] static void store(Byte* to, Values values, const Decoder& decoder) {
    if constexpr (format == NumberFormat::float64) {
      _mm512_storeu_pd(to, lowered(values.low, decoder));
      _mm512_storeu_pd(to + 64, lowered(values.high, decoder));
    } else if constexpr (format == NumberFormat::float32) {
      _mm512_storeu_ps(to, narrowed(values));
    } else if constexpr (format == NumberFormat::float16) {
      const __m256i halves = _mm512_cvtps_ph(narrowed(values), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), halves);
    } else {
      const __m512i bits = _mm512_castps_si512(narrowed(values));
      const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
      const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
    }
  }

  template <NumberFormat format>
  [[gnu::always_inline]] static void add(Byte* to, Values values, const Decoder& decoder) {
    if constexpr (format == NumberFormat::float64) {
      _mm512_storeu_pd(to, _mm512_add_pd(_mm512_loadu_pd(to), lowered(values.low, decoder)));
      _mm512_storeu_pd(to + 64, _mm512_add_pd(_mm512_loadu_pd(to + 64), lowered(values.high, decoder)));
    } else {
      _mm512_storeu_ps(to, _mm512_add_ps(_mm512_loadu_ps(to), narrowed(values)));
    }
  }
};

}  // namespace
}  // namespace avx512

const QuantizeKernels& avx512_quantize_kernels() {
  static constexpr QuantizeKernels table = avx512::quantize_table<avx512::Sixteen>();
  return table;
}

}  // namespace bestride::inline kernels
