// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize/widen.hpp"

#include <gtest/gtest.h>

#include "kernels/quantize/test_numbers.hpp"

namespace bestride::test {
namespace {

constexpr NumberFormat halves[] = {NumberFormat::float16, NumberFormat::bfloat16};

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
std::uint16_t narrowed(float value, NumberFormat format) {
  std::uint16_t out = 0;
  narrow(&value, format, 1, &out);
  return out;
}

TEST(Widen, RoundTripOfEveryNumber) {
  for (const NumberFormat format : halves) {
    const Shape shape = shape_of(format);
    // In place, as a piece is widened: the numbers are in the second half of the buffer.
    std::vector<float> wide(65536);
    auto* numbers = reinterpret_cast<std::uint16_t*>(wide.data() + 32768);
    for (unsigned i = 0; i < 65536; ++i) numbers[i] = static_cast<std::uint16_t>(i);
    widen(numbers, format, 65536, wide.data());
    for (unsigned i = 0; i < 65536; ++i) {
      const long double value = value_of(shape, i);
      if (std::isnan(value)) {
        ASSERT_TRUE(std::isnan(wide[i])) << name_of(format) << ' ' << i;
        ASSERT_TRUE(std::isnan(value_of(shape, narrowed(wide[i], format)))) << name_of(format) << ' ' << i;
        continue;
      }
      ASSERT_EQ(static_cast<long double>(wide[i]), value) << name_of(format) << ' ' << i;
      ASSERT_EQ(narrowed(wide[i], format), i) << name_of(format);
    }
  }
}

TEST(Widen, RoundsToNearestAndTiesToEven) {
  for (const NumberFormat format : halves) {
    const Shape shape = shape_of(format);
    const unsigned top = static_cast<unsigned>(mask(shape.exponent) << shape.fraction);  // infinity
    for (unsigned i = 0; i + 1 < top; ++i) {
      const float low = static_cast<float>(value_of(shape, i)), high = static_cast<float>(value_of(shape, i + 1));
      const float middle = low + (high - low) / 2;
      ASSERT_EQ(narrowed(middle, format), i % 2 ? i + 1 : i) << name_of(format) << ' ' << i;
      ASSERT_EQ(narrowed(std::nextafter(middle, low), format), i) << name_of(format) << ' ' << i;
      ASSERT_EQ(narrowed(-std::nextafter(middle, high), format), (i + 1) | 0x8000u) << name_of(format) << ' ' << i;
    }
    ASSERT_EQ(narrowed(std::numeric_limits<float>::max(), format), top);
    ASSERT_EQ(bits_of(-0.0f) >> 16, narrowed(-0.0f, format));
  }
}

}  // namespace
}  // namespace bestride::test
