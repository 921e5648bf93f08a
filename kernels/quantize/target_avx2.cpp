// SPDX-License-Identifier: Apache-2.0
// Quantization of eight numbers at a time, for AVX2 with F16C. The arithmetic is that of number.hpp, in float64 for
// every format.
#define BESTRIDE_TARGET avx2
#include <immintrin.h>

#include "kernels/quantize/target/blocks.hpp"

namespace bestride::inline kernels {

namespace avx2 {
namespace {

struct Eight {
  static constexpr int width = 8;
  static constexpr Int stride = 32;

  struct Values {
    __m256d low, high;
  };

  template <NumberFormat format>
  [[gnu::always_inline]] static BitsOf<format> largest(const Byte* from, Int bytes) {
    __m256i most = _mm256_setzero_si256();
    for (Int i = 0; i < bytes; i += stride) {
      const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
      if constexpr (format == NumberFormat::float64) {
        const __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi64x(0x7fffffffffffffff));
        most = _mm256_blendv_epi8(most, magnitude, _mm256_cmpgt_epi64(magnitude, most));
      } else if constexpr (format == NumberFormat::float32) {
        most = _mm256_max_epu32(most, _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff)));
      } else {
        most = _mm256_max_epu16(most, _mm256_and_si256(bits, _mm256_set1_epi16(0x7fff)));
      }
    }
    BitsOf<format> lanes[stride / size_of<format>];
    __builtin_memcpy(lanes, &most, sizeof lanes);
    for (const BitsOf<format> lane : lanes) lanes[0] = lane > lanes[0] ? lane : lanes[0];
    return lanes[0];
  }

  [[gnu::always_inline]] static Values widened(__m256 floats) {
    return {_mm256_cvtps_pd(_mm256_castps256_ps128(floats)), _mm256_cvtps_pd(_mm256_extractf128_ps(floats, 1))};
  }
  [[gnu::always_inline]] static __m256 narrowed(Values values) {
    return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(values.low)), _mm256_cvtpd_ps(values.high), 1);
  }

  template <NumberFormat format>
  [[gnu::always_inline]] static Values load(const Byte* from) {
    if constexpr (format == NumberFormat::float64)
      return {_mm256_loadu_pd(reinterpret_cast<const double*>(from)),
              _mm256_loadu_pd(reinterpret_cast<const double*>(from + 32))};
    if constexpr (format == NumberFormat::float32)
      return widened(_mm256_loadu_ps(reinterpret_cast<const float*>(from)));
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    if constexpr (format == NumberFormat::float16) return widened(_mm256_cvtph_ps(halves));
    return widened(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16)));
  }

  template <NumberFormat format, CodeBits bits>
  [[gnu::always_inline]] static void encode(const Byte* from, const Encoder& encoder, Byte* to) {
    Values values = load<format>(from);
    if constexpr (format == NumberFormat::float64) {
      const __m256d lift = _mm256_set1_pd(encoder.lift);
      values = {_mm256_mul_pd(values.low, lift), _mm256_mul_pd(values.high, lift)};
    }
    const __m256d inverse = _mm256_set1_pd(encoder.inverse);
    const __m128i low = _mm256_cvtpd_epi32(_mm256_mul_pd(values.low, inverse));
    const __m128i high = _mm256_cvtpd_epi32(_mm256_mul_pd(values.high, inverse));
    const __m128i words = _mm_packs_epi32(low, high);
    const __m128i codes = _mm_packs_epi16(words, words);
    if constexpr (bits == CodeBits::int8) {
      _mm_storel_epi64(reinterpret_cast<__m128i*>(to), codes);
    } else {
      const __m128i pairs =
          _mm_maddubs_epi16(_mm_and_si128(codes, _mm_set1_epi8(15)), _mm_set1_epi16(0x1001));  // first + 16 * second
      write(to, _mm_cvtsi128_si32(_mm_packus_epi16(pairs, pairs)));
    }
  }

  template <CodeBits bits>
  [[gnu::always_inline]] static Values decode(const Byte* from, const Decoder& decoder) {
    __m128i codes;
    if constexpr (bits == CodeBits::int8) {
      codes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    } else {
      const __m128i pairs = _mm_cvtepu8_epi16(_mm_cvtsi32_si128(read<int>(from)));
      const __m128i nibbles = _mm_and_si128(_mm_or_si128(pairs, _mm_slli_epi16(pairs, 4)), _mm_set1_epi8(15));
      codes = _mm_sub_epi8(_mm_xor_si128(nibbles, _mm_set1_epi8(8)), _mm_set1_epi8(8));
    }
    const __m256i wide = _mm256_cvtepi8_epi32(codes);
    const __m256d step = _mm256_set1_pd(decoder.step);
    return {_mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(wide)), step),
            _mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_extracti128_si256(wide, 1)), step)};
  }

  [[gnu::always_inline]] static __m256d lowered(__m256d values, const Decoder& decoder) {
    values = _mm256_mul_pd(values, _mm256_set1_pd(decoder.lower));
    // If both operands are zeros, these return the second one.
    return _mm256_max_pd(_mm256_set1_pd(-decoder.largest), _mm256_min_pd(_mm256_set1_pd(decoder.largest), values));
  }

  template <NumberFormat format>
  [[gnu::always_inline]] static void store(Byte* to, Values values, const Decoder& decoder) {
    if constexpr (format == NumberFormat::float64) {
      _mm256_storeu_pd(reinterpret_cast<double*>(to), lowered(values.low, decoder));
      _mm256_storeu_pd(reinterpret_cast<double*>(to + 32), lowered(values.high, decoder));
    } else if constexpr (format == NumberFormat::float32) {
      _mm256_storeu_ps(reinterpret_cast<float*>(to), narrowed(values));
    } else if constexpr (format == NumberFormat::float16) {
      const __m128i halves = _mm256_cvtps_ph(narrowed(values), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
    } else {
      const __m256i bits = _mm256_castps_si256(narrowed(values));
      const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
      const __m256i rounded =
          _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
      const __m128i halves = _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), halves);
    }
  }

  template <NumberFormat format>
  [[gnu::always_inline]] static void add(Byte* to, Values values, const Decoder& decoder) {
    if constexpr (format == NumberFormat::float64) {
      const Values there = load<format>(to);
      _mm256_storeu_pd(reinterpret_cast<double*>(to), _mm256_add_pd(there.low, lowered(values.low, decoder)));
      _mm256_storeu_pd(reinterpret_cast<double*>(to + 32), _mm256_add_pd(there.high, lowered(values.high, decoder)));
    } else {
      float* floats = reinterpret_cast<float*>(to);
      _mm256_storeu_ps(floats, _mm256_add_ps(_mm256_loadu_ps(floats), narrowed(values)));
    }
  }
};

}  // namespace
}  // namespace avx2

const QuantizeKernels& avx2_quantize_kernels() {
  static constexpr QuantizeKernels table = avx2::quantize_table<avx2::Eight>();
  return table;
}

}  // namespace bestride::inline kernels
