// SPDX-License-Identifier: Apache-2.0
// The guarantees of quantize.hpp, for all kinds of blocks, lengths and alignments, every format, both widths and every
// instruction set. The bytes of all instruction sets equal those of the scalar kernels. The memory ends at an
// inaccessible page.
#include "kernels/quantize/quantize.hpp"

#include <gtest/gtest.h>

#include "kernels/quantize/environment.hpp"
#include "kernels/quantize/test_numbers.hpp"
#include "kernels/test_memory.hpp"

namespace bestride::inline kernels {
namespace {

using namespace test;

constexpr std::int64_t lengths[] = {0,  1,  2,  3,  7,  8,   9,   15,  16,  17,  31,  32,  33,  47,  63,  64,
                                    65, 77, 95, 96, 97, 127, 128, 129, 191, 255, 256, 257, 383, 512, 513, 700};

std::vector<Isa> all_isas() {
  std::vector<Isa> all;
  for (int isa = 0; isa <= static_cast<int>(widest_isa()); ++isa) all.push_back(static_cast<Isa>(isa));
  return all;
}

bool same(const Guarded& a, const Guarded& b) {
  return a.size() == 0 || std::memcmp(a.data(), b.data(), a.size()) == 0;
}

/// Checks what quantize.hpp guarantees for one block.
void check_block(const void* numbers, NumberFormat format, const void* back, NumberFormat back_format,
                 std::int64_t first, std::int64_t count, CodeBits bits) {
  const Shape shape = shape_of(format), back_shape = shape_of(back_format);
  long double most = 0;
  bool marked = false;
  for (std::int64_t i = first; i < first + count; ++i) {
    const long double x = value_of(shape, get(numbers, shape, i));
    if (std::isfinite(x))
      most = std::max(most, std::fabs(x));
    else
      marked = true;
  }
  const int top = (bits == CodeBits::int8 ? 127 : 7) - marked;
  const long double left = back_shape.size == 2 ? 0x1p-24L : 0x1p-50L;
  const bool exact = most <= top * value_of(shape, 1) && format == back_format;
  for (std::int64_t i = first; i < first + count; ++i) {
    const std::uint64_t y_bits = get(back, back_shape, i);
    const long double x = value_of(shape, get(numbers, shape, i)), y = value_of(back_shape, y_bits);
    if (!std::isfinite(x)) {
      ASSERT_TRUE(std::isnan(x) ? std::isnan(y) : x == y) << i << ": " << x << " became " << y;
      continue;
    }
    if (!std::isfinite(y)) {  // only a number that the other format cannot represent
      ASSERT_NE(format, back_format) << i << ": " << x << " became " << y;
      const std::uint64_t greatest =
          compose(back_shape, false, mask(back_shape.exponent) - 1, mask(back_shape.fraction));
      ASSERT_GT(std::fabs(x) + most / (2 * top), value_of(back_shape, greatest)) << i << ": " << x << " became " << y;
      continue;
    }
    const long double bound = most / (2 * top) + unit_of(back_shape, y_bits) / 2 + most * left;
    ASSERT_LE(std::fabs(x - y), bound) << i << ": " << static_cast<double>(x) << " became " << static_cast<double>(y);
    if (format == back_format && (exact || std::fabs(x) == most)) {
      ASSERT_EQ(x, y) << i;
    }
    if (x == 0) {
      ASSERT_EQ(y_bits, 0u) << i;
    }
  }
}

struct Case {
  NumberFormat format;
  CodeBits bits;
};

class Quantize : public ::testing::TestWithParam<Case> {
 protected:
  void check(std::int64_t count, Kind kind, Random& random) {
    const auto [format, bits] = GetParam();
    SCOPED_TRACE("kind " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(count) + " numbers");
    const auto side = random.chance(50) ? Guarded::Side::before_wall : Guarded::Side::after_wall;
    const std::int64_t slack = random.chance(50) ? 0 : random.between(1, 63);
    const Guarded numbers(count * number_bytes(format), side, slack);
    fill(numbers.data(), format, count, kind, random);
    const std::int64_t bytes = quantized_bytes(count, format, bits);
    const Guarded expected(bytes, side), expected_back(count * number_bytes(format), side);
    quantize(numbers.data(), format, count, bits, expected.data(), Isa::scalar);
    dequantize(expected.data(), bits, count, format, expected_back.data(), Isa::scalar);
    const std::int64_t block = quantized_block_size(bits);
    for (std::int64_t first = 0; first < count; first += block)
      check_block(numbers.data(), format, expected_back.data(), format, first, std::min(block, count - first), bits);
    for (const Isa isa : all_isas()) {
      SCOPED_TRACE(name(isa));
      const Guarded codes(bytes, side, slack), back(count * number_bytes(format), side, slack);
      quantize(numbers.data(), format, count, bits, codes.data(), isa);
      ASSERT_TRUE(same(codes, expected)) << "quantize";
      dequantize(codes.data(), bits, count, format, back.data(), isa);
      ASSERT_TRUE(same(back, expected_back)) << "dequantize";
      ASSERT_TRUE(same(codes, expected)) << "dequantize wrote its source";
    }
  }
};

TEST_P(Quantize, KeepsItsBoundOnEveryInstructionSet) {
  Random random(1 + static_cast<std::uint64_t>(GetParam().format) * 2 + (GetParam().bits == CodeBits::int8));
  for (const Kind kind : all_kinds)
    for (const std::int64_t count : lengths)
      for (int again = 0; again < 3; ++again) {
        check(count, kind, random);
        if (HasFatalFailure()) return;
      }
}

TEST_P(Quantize, HasTheDocumentedSize) {
  const auto [format, bits] = GetParam();
  EXPECT_EQ(quantized_bytes(0, format, bits), 0);
  const std::int64_t scale = format == NumberFormat::float64 ? 8 : 4, many = std::int64_t{1} << 40;
  EXPECT_EQ(quantized_bytes(1, format, bits), scale + 1);
  EXPECT_EQ(quantized_bytes(quantized_block_size(bits) + 3, format, bits),
            2 * scale + (bits == CodeBits::int8 ? 259 : 34));
  const double ratio =
      static_cast<double>(quantized_bytes(many, format, bits)) / static_cast<double>(many * number_bytes(format));
  const double most[][2] = {{0.15, 0.27}, {0.08, 0.13}, {0.3, 0.54}, {0.3, 0.54}};
  EXPECT_LE(ratio, most[static_cast<int>(format)][bits == CodeBits::int8]);
}

/// A message may be cut at the end of a block.
TEST_P(Quantize, BlocksAreIndependent) {
  const auto [format, bits] = GetParam();
  Random random(3);
  const std::int64_t block = quantized_block_size(bits), count = 3 * block + 5,
                     bytes = quantized_bytes(count, format, bits);
  std::vector<char> numbers(static_cast<std::size_t>(count * number_bytes(format))),
      whole(static_cast<std::size_t>(bytes)), parts(whole.size());
  fill(numbers.data(), format, count, Kind::any_exponent, random);
  quantize(numbers.data(), format, count, bits, whole.data());
  quantize(numbers.data(), format, block, bits, parts.data());
  quantize(numbers.data() + block * number_bytes(format), format, count - block, bits,
           parts.data() + quantized_bytes(block, format, bits));
  EXPECT_EQ(whole, parts);
}

TEST_P(Quantize, AcceptsAnyBytes) {
  const auto [format, bits] = GetParam();
  Random random(4);
  for (int i = 0; i < 200; ++i) {
    const std::int64_t count = random.between(0, 600);
    const Guarded codes(quantized_bytes(count, format, bits), Guarded::Side::before_wall);
    const Guarded back(count * number_bytes(format), Guarded::Side::before_wall);
    for (std::size_t k = 0; k < codes.size(); ++k)
      codes.data()[k] = static_cast<unsigned char>(random.chance(50) ? random.bits() : 0xff);
    for (const Isa isa : all_isas()) dequantize(codes.data(), bits, count, format, back.data(), isa);
  }
}

#if defined(__x86_64__)
/// Settings that a program may have made: flush to zero, denormals are zero, round up, trap on all exceptions.
TEST_P(Quantize, DoesNotDependOnTheFloatEnvironment) {
  const auto [format, bits] = GetParam();
  Random random(5);
  const std::int64_t count = 300;
  for (const Kind kind : {Kind::denormal, Kind::not_finite, Kind::usual, Kind::huge}) {
    std::vector<char> numbers(static_cast<std::size_t>(count * number_bytes(format))), back(numbers.size()),
        back_there(numbers.size());
    std::vector<char> codes(static_cast<std::size_t>(quantized_bytes(count, format, bits))), codes_there(codes.size());
    fill(numbers.data(), format, count, kind, random);
    for (const Isa isa : all_isas()) {
      quantize(numbers.data(), format, count, bits, codes.data(), isa);
      dequantize(codes.data(), bits, count, format, back.data(), isa);
      constexpr unsigned theirs = 0x8000 | 0x0040 | 0x4000;
      const unsigned before = _mm_getcsr();
      _mm_setcsr(theirs);
      quantize(numbers.data(), format, count, bits, codes_there.data(), isa);
      dequantize(codes.data(), bits, count, format, back_there.data(), isa);
      const unsigned after = _mm_getcsr();
      _mm_setcsr(before);
      EXPECT_EQ(after, theirs);
      EXPECT_EQ(codes, codes_there) << name(isa);
      EXPECT_EQ(back, back_there) << name(isa);
    }
  }
}
#endif

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const NumberFormat format : all_formats)
    for (const CodeBits bits : all_bits) all.push_back({format, bits});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Quantize, ::testing::ValuesIn(all_cases()), [](const auto& info) {
  return std::string(name_of(info.param.format)) + (info.param.bits == CodeBits::int8 ? "_int8" : "_int4");
});

/// Numbers quantized as one format are decoded as another, within the bound, rounded to the other format.
TEST(QuantizeFormats, ShareOneEncoding) {
  Random random(6);
  constexpr NumberFormat narrow[] = {NumberFormat::float32, NumberFormat::float16, NumberFormat::bfloat16};
  for (const NumberFormat from : narrow)
    for (const NumberFormat to : narrow)
      for (const CodeBits bits : all_bits)
        for (const Kind kind : all_kinds) {
          const std::int64_t count = random.between(1, 300), block = quantized_block_size(bits);
          SCOPED_TRACE(std::string(name_of(from)) + " as " + name_of(to) + ", kind " +
                       std::to_string(static_cast<int>(kind)));
          std::vector<char> numbers(static_cast<std::size_t>(count * 4)),
              codes(static_cast<std::size_t>(quantized_bytes(count, from, bits)));
          std::vector<char> back(numbers.size()), expected(numbers.size());
          fill(numbers.data(), from, count, kind, random);
          quantize(numbers.data(), from, count, bits, codes.data());
          dequantize(codes.data(), bits, count, to, expected.data(), Isa::scalar);
          for (std::int64_t first = 0; first < count; first += block)
            check_block(numbers.data(), from, expected.data(), to, first, std::min(block, count - first), bits);
          for (const Isa isa : all_isas()) {
            dequantize(codes.data(), bits, count, to, back.data(), isa);
            EXPECT_EQ(back, expected) << name(isa);
          }
        }
}

template <class Real>
void check_add(NumberFormat format) {
  Random random(7);
  for (const CodeBits bits : all_bits)
    for (const Kind kind : all_kinds)
      for (const std::int64_t count : lengths) {
        const std::int64_t size = count * static_cast<std::int64_t>(sizeof(Real));
        const Guarded numbers(size, Guarded::Side::before_wall), back(size, Guarded::Side::before_wall);
        const Guarded codes(quantized_bytes(count, format, bits), Guarded::Side::before_wall);
        fill(numbers.data(), format, count, kind, random);
        quantize(numbers.data(), format, count, bits, codes.data());
        dequantize(codes.data(), bits, count, format, back.data());
        fill(numbers.data(), format, count, random.chance(50) ? kind : Kind::any_exponent, random);
        for (const Isa isa : all_isas()) {
          const Guarded sums(size, Guarded::Side::before_wall);
          if (size > 0) std::memcpy(sums.data(), numbers.data(), sums.size());
          dequantize_add(codes.data(), bits, count, reinterpret_cast<Real*>(sums.data()), isa);
          for (std::int64_t i = 0; i < count; ++i) {
            Real a, b, got;
            std::memcpy(&a, numbers.data() + i * static_cast<std::int64_t>(sizeof a), sizeof a);
            std::memcpy(&b, back.data() + i * static_cast<std::int64_t>(sizeof b), sizeof b);
            std::memcpy(&got, sums.data() + i * static_cast<std::int64_t>(sizeof got), sizeof got);
            const Real sum = a + b;
            ASSERT_TRUE(std::isnan(sum) ? std::isnan(got) : sum == got)
                << name(isa) << " " << i << ": " << a << " + " << b << " gave " << got;
          }
        }
      }
}

TEST(QuantizeAdd, EqualsDequantizeAndAdd) {
  check_add<float>(NumberFormat::float32);
  check_add<double>(NumberFormat::float64);
}

/// The exact bytes that docs/quantized.md specifies.
TEST(QuantizeBytes, MatchTheirDescription) {
  const float numbers[] = {2, -1, 0.5f, -0.0f, -2};
  std::vector<unsigned char> codes(static_cast<std::size_t>(quantized_bytes(5, NumberFormat::float32, CodeBits::int8)));
  quantize(numbers, NumberFormat::float32, 5, CodeBits::int8, codes.data());
  EXPECT_EQ(codes, (std::vector<unsigned char>{0, 0, 0, 0x40, 127, 0xc0, 32, 0, 0x81}));  // -63.5 rounds to -64
  codes.resize(static_cast<std::size_t>(quantized_bytes(5, NumberFormat::float32, CodeBits::int4)));
  quantize(numbers, NumberFormat::float32, 5, CodeBits::int4, codes.data());
  EXPECT_EQ(codes, (std::vector<unsigned char>{0, 0, 0, 0x40, 0xc7, 0x02, 0x09}));  // 7 and -4, 2 and 0, -7
  const float strange[] = {NAN, -INFINITY, INFINITY, 1, -1};
  quantize(strange, NumberFormat::float32, 5, CodeBits::int4, codes.data());
  EXPECT_EQ(codes, (std::vector<unsigned char>{0, 0, 0x80, 0xbf, 0x98, 0x67, 0x0a}));
}

}  // namespace
}  // namespace bestride::inline kernels
