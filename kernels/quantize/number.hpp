// SPDX-License-Identifier: Apache-2.0
// Number: conversion of the four formats to and from float64, and the arithmetic of one code. Every target computes
// exactly this; a compiler flag disables fused multiply-add. The file is compiled into the namespace BESTRIDE_TARGET of
// the including file, once per translation unit.
#pragma once
#include <cstdint>

#include "kernels/quantize/format.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

using Int = std::int64_t;

template <class To, class From>
[[gnu::always_inline]] inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

// ---- Formats: Bits holds one number; from_double rounds to nearest even, through float32 for 16-bit formats

template <NumberFormat>
struct Number;

template <>
struct Number<NumberFormat::float64> {
  using Bits = std::uint64_t;
  using Real = double;
  static constexpr Bits sign = Bits{1} << 63, infinity = Bits{0x7ff} << 52, nan = Bits{0x7ff8} << 48;
  [[gnu::always_inline]] static double to_double(Bits bits) { return bits_as<double>(bits); }
  [[gnu::always_inline]] static Bits from_double(double value) { return bits_as<Bits>(value); }
};

template <>
struct Number<NumberFormat::float32> {
  using Bits = std::uint32_t;
  using Real = float;
  static constexpr Bits sign = 0x80000000, infinity = 0x7f800000, nan = 0x7fc00000;
  [[gnu::always_inline]] static double to_double(Bits bits) { return static_cast<double>(bits_as<float>(bits)); }
  [[gnu::always_inline]] static Bits from_double(double value) { return bits_as<Bits>(static_cast<float>(value)); }
};

template <>
struct Number<NumberFormat::bfloat16> {
  using Bits = std::uint16_t;
  static constexpr Bits sign = 0x8000, infinity = 0x7f80, nan = 0x7fc0;
  [[gnu::always_inline]] static double to_double(Bits bits) {
    return Number<NumberFormat::float32>::to_double(std::uint32_t{bits} << 16);
  }
  /// Not for NaN.
  [[gnu::always_inline]] static Bits from_double(double value) {
    const std::uint32_t bits = Number<NumberFormat::float32>::from_double(value);
    return static_cast<Bits>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

template <>
struct Number<NumberFormat::float16> {
  using Bits = std::uint16_t;
  static constexpr Bits sign = 0x8000, infinity = 0x7c00, nan = 0x7e00;
  /// Not for NaN and infinity.
  [[gnu::always_inline]] static double to_double(Bits bits) {
    const std::uint32_t magnitude = bits & 0x7fffu;
    double value = magnitude * 0x1p-24;  // denormal: units of 2^-24
    if (magnitude >= 0x400) value = static_cast<double>(bits_as<float>((magnitude << 13) + (112u << 23)));
    return bits & sign ? -value : value;
  }
  /// Not for NaN.
  [[gnu::always_inline]] static Bits from_double(double value) {
    const std::uint32_t all = Number<NumberFormat::float32>::from_double(value);
    const std::uint32_t bits = all & 0x7fffffff;
    std::uint32_t half;
    if (bits >= 0x477ff000) {  // 65520 and above round to infinity
      half = infinity;
    } else if (bits < 0x38800000) {  // below 2^-14: the unit in the last place of 0.5 + x in float32 is that of a
                                     // denormal float16
      half = bits_as<std::uint32_t>(bits_as<float>(bits) + 0.5f) - bits_as<std::uint32_t>(0.5f);
    } else {
      half = ((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (112u << 10);
    }
    return static_cast<Bits>(all >> 16 & sign) | static_cast<Bits>(half);
  }
};

// ---- Scale of a block

/// Denormal float64 magnitudes are scaled up by an exact power of two, so that the reciprocal and the step keep full
/// precision.
[[gnu::always_inline]] inline double lift_of(double largest) { return largest < 0x1p-512 ? 0x1p512 : 1; }

struct Encoder {
  double lift, inverse;
  [[gnu::always_inline]] Encoder(double largest, int top)
      : lift(lift_of(largest)), inverse(largest > 0 ? top / (largest * lift) : 0) {}
};

struct Decoder {
  double largest, lower, step;
  /// The step is rounded up if top * step would not reach `largest`, so that `largest` is reproduced exactly.
  [[gnu::always_inline]] Decoder(double block_largest, int top)
      : largest(block_largest), lower(block_largest < 0x1p-512 ? 0x1p-512 : 1) {
    const double lifted = largest * lift_of(largest);
    step = lifted / top;
    if (step * top < lifted) step = bits_as<double>(bits_as<std::uint64_t>(step) + 1);
  }
};

// Only float64 needs the scaling, and the clamp for the last bit of top * step.

template <NumberFormat format>
[[gnu::always_inline]] inline int encode_number(double value, const Encoder& encoder) {
  if (format == NumberFormat::float64) value *= encoder.lift;
  constexpr double to_integer = 0x1.8p52;  // the sum has a unit in the last place of 1, so it rounds to nearest even
  return static_cast<int>(value * encoder.inverse + to_integer - to_integer);
}

template <NumberFormat format>
[[gnu::always_inline]] inline double decode_number(int code, const Decoder& decoder) {
  double value = code * decoder.step;
  if (format == NumberFormat::float64) {
    value *= decoder.lower;
    value = value > decoder.largest ? decoder.largest : value;
    value = value < -decoder.largest ? -decoder.largest : value;
  }
  return value;
}

// ---- Blocks with NaN or infinity: marked by the sign of the scale

template <CodeBits bits>
inline constexpr int nan_code = -top_code<bits> - 1;

/// `largest`: the largest of the block's finite numbers.
template <NumberFormat format, CodeBits bits>
[[gnu::always_inline]] inline int encode_marked(typename Number<format>::Bits number, const Encoder& encoder) {
  using N = Number<format>;
  const auto magnitude = static_cast<typename N::Bits>(number & ~N::sign);
  if (magnitude > N::infinity) return nan_code<bits>;
  if (magnitude == N::infinity) return number & N::sign ? -top_code<bits> : top_code<bits>;
  return encode_number<format>(N::to_double(number), encoder);
}

template <NumberFormat format, CodeBits bits>
[[gnu::always_inline]] inline typename Number<format>::Bits decode_marked(int code, const Decoder& decoder) {
  using N = Number<format>;
  if (code == nan_code<bits>) return N::nan;
  if (code == top_code<bits>) return N::infinity;
  if (code == -top_code<bits>) return static_cast<typename N::Bits>(N::infinity | N::sign);
  return N::from_double(decode_number<format>(code, decoder));
}

/// The format of the scale.
template <NumberFormat format>
inline constexpr NumberFormat scale_format =
    format == NumberFormat::float64 ? NumberFormat::float64 : NumberFormat::float32;

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
