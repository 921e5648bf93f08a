// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers of any format for tests: decoded by the definition of the formats (sign, exponent, fraction), not by the code
// under test.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/quantize/quantize.hpp"
#include "tests/support/random.hpp"

namespace bestride::test {

struct Shape {
  int size, exponent, fraction;  ///< bytes, bits, bits
};
inline Shape shape_of(NumberFormat format) {
  switch (format) {
    case NumberFormat::float32: return {4, 8, 23};
    case NumberFormat::float64: return {8, 11, 52};
    case NumberFormat::float16: return {2, 5, 10};
    case NumberFormat::bfloat16: return {2, 8, 7};
  }
  return {};
}
inline const char* name_of(NumberFormat format) {
  constexpr const char* names[] = {"float32", "float64", "float16", "bfloat16"};
  return names[static_cast<int>(format)];
}

inline constexpr NumberFormat all_formats[] = {NumberFormat::float32, NumberFormat::float64, NumberFormat::float16,
                                               NumberFormat::bfloat16};
inline constexpr CodeBits all_bits[] = {CodeBits::int4, CodeBits::int8};

inline std::uint64_t mask(int bits) { return (std::uint64_t{1} << bits) - 1; }
inline std::uint64_t compose(Shape shape, bool sign, std::uint64_t exponent, std::uint64_t fraction) {
  return (static_cast<std::uint64_t>(sign) << (shape.exponent + shape.fraction)) | exponent << shape.fraction |
         fraction;
}

/// The exact value; NaN and infinities are preserved.
inline long double value_of(Shape shape, std::uint64_t bits) {
  const bool sign = bits >> (shape.exponent + shape.fraction) & 1;
  const auto exponent = static_cast<int>(bits >> shape.fraction & mask(shape.exponent));
  const std::uint64_t fraction = bits & mask(shape.fraction);
  const int bias = (1 << (shape.exponent - 1)) - 1;
  long double value;
  if (exponent == (1 << shape.exponent) - 1)
    value = fraction ? std::nanl("") : HUGE_VALL;
  else if (exponent == 0)
    value = std::ldexp(static_cast<long double>(fraction), 1 - bias - shape.fraction);
  else
    value = std::ldexp(static_cast<long double>(fraction | std::uint64_t{1} << shape.fraction),
                       exponent - bias - shape.fraction);
  return sign ? -value : value;
}

/// The unit in the last place of a finite value.
inline long double unit_of(Shape shape, std::uint64_t bits) {
  const auto exponent = static_cast<int>(bits >> shape.fraction & mask(shape.exponent));
  const int bias = (1 << (shape.exponent - 1)) - 1;
  return std::ldexp(1.0L, (exponent ? exponent : 1) - bias - shape.fraction);
}

inline std::uint64_t get(const void* numbers, Shape shape, std::int64_t i) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(numbers) + i * shape.size, static_cast<std::size_t>(shape.size));
  return bits;
}
inline void set(void* numbers, Shape shape, std::int64_t i, std::uint64_t bits) {
  std::memcpy(static_cast<char*>(numbers) + i * shape.size, &bits, static_cast<std::size_t>(shape.size));
}

/// Kinds of block content, including difficult ones.
enum class Kind {
  usual,
  any_exponent,
  denormal,
  few_units,
  huge,
  outlier,
  equal,
  alternating,
  zeros,
  not_finite,
  only_not_finite
};
inline constexpr Kind all_kinds[] = {Kind::usual, Kind::any_exponent, Kind::denormal,       Kind::few_units,
                                     Kind::huge,  Kind::outlier,      Kind::equal,          Kind::alternating,
                                     Kind::zeros, Kind::not_finite,   Kind::only_not_finite};

inline void fill(void* numbers, NumberFormat format, std::int64_t count, Kind kind, Random& random) {
  const Shape shape = shape_of(format);
  const std::uint64_t top = mask(shape.exponent);  // exponent of NaN and infinity
  const auto fraction = [&] { return random.bits() & mask(shape.fraction); };
  const auto exponent = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::uint64_t>(random.between(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)));
  };
  const auto not_finite = [&] { return compose(shape, random.chance(50), top, random.chance(50) ? 0 : fraction()); };
  const std::uint64_t one = compose(shape, false, exponent(0, top - 1), fraction());
  const std::uint64_t middle = exponent(1, top - 4);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool sign = random.chance(50);
    std::uint64_t bits = 0;
    switch (kind) {
      case Kind::usual: bits = compose(shape, sign, middle + exponent(0, 3), fraction()); break;
      case Kind::any_exponent: bits = compose(shape, sign, exponent(0, top - 1), fraction()); break;
      case Kind::denormal: bits = compose(shape, sign, 0, fraction()); break;
      case Kind::few_units: bits = compose(shape, sign, 0, random.bits() % 8); break;
      case Kind::huge:
        bits = compose(shape, sign, top - 1, random.chance(20) ? mask(shape.fraction) : fraction());
        break;
      case Kind::outlier: bits = compose(shape, sign, i == count / 3 ? top - 1 : exponent(0, 3), fraction()); break;
      case Kind::equal: bits = one; break;
      case Kind::alternating: bits = i % 2 ? one : one | compose(shape, true, 0, 0); break;
      case Kind::zeros: bits = compose(shape, sign, 0, 0); break;
      case Kind::not_finite:
        bits = random.chance(3) ? not_finite() : compose(shape, sign, middle + exponent(0, 3), fraction());
        break;
      case Kind::only_not_finite: bits = not_finite(); break;
    }
    set(numbers, shape, i, bits);
  }
}

}  // namespace bestride::test
