// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers for quantized allgathers, and their values after one coding. For tests.
#include <random>
#include <vector>

#include "kernels/quantize/quantize.hpp"
#include "kernels/quantize/test_numbers.hpp"

namespace bestride::inline collectives {

/// Numbers whose magnitude changes along the vector, occasionally a NaN or an infinity.
inline std::vector<std::byte> random_numbers(std::int64_t count, NumberFormat format, bool finite,
                                             std::mt19937_64& random) {
  const test::Shape shape = test::shape_of(format);
  std::vector<std::byte> numbers(static_cast<std::size_t>(count * shape.size));
  const std::uint64_t bias = (std::uint64_t{1} << (shape.exponent - 1)) - 1;
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t bits =
        test::compose(shape, random() % 2, bias - 4 + random() % 4 + static_cast<std::uint64_t>(i / 100 % 4),
                      random() & test::mask(shape.fraction));
    if (!finite && random() % 300 == 0)
      bits = test::compose(shape, random() % 2, test::mask(shape.exponent),
                           random() % 2 ? 0 : std::uint64_t{1} << (shape.fraction - 1));
    if (random() % 50 == 0) bits = 0;
    test::set(numbers.data(), shape, i, bits);
  }
  return numbers;
}

/// The expected values of a rank's block: encoded and decoded once, from its beginning.
inline std::vector<std::byte> coded_once(const std::vector<std::byte>& numbers, NumberFormat format, CodeBits bits) {
  const std::int64_t count = static_cast<std::int64_t>(numbers.size()) / number_bytes(format);
  std::vector<std::byte> codes(static_cast<std::size_t>(quantized_bytes(count, format, bits))), back(numbers.size());
  quantize(numbers.data(), format, count, bits, codes.data());
  dequantize(codes.data(), bits, count, format, back.data());
  return back;
}

}  // namespace bestride::inline collectives
