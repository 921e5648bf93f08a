// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize/widen.hpp"

#define BESTRIDE_TARGET widening
#include "kernels/quantize/environment.hpp"
#include "kernels/quantize/number.hpp"

namespace bestride::inline kernels {
namespace {

using Float = widening::Number<NumberFormat::float32>;

template <NumberFormat format>
std::uint32_t widened(std::uint16_t bits) noexcept {
  using N = widening::Number<format>;
  const std::uint16_t magnitude = static_cast<std::uint16_t>(bits & ~N::sign);
  if (magnitude > N::infinity) return Float::nan;
  if (magnitude == N::infinity) return Float::infinity | (bits & N::sign ? Float::sign : 0);
  return Float::from_double(N::to_double(bits));
}

template <NumberFormat format>
std::uint16_t narrowed(std::uint32_t bits) noexcept {
  using N = widening::Number<format>;
  return (bits & ~Float::sign) > Float::infinity ? N::nan : N::from_double(Float::to_double(bits));
}

// noinline, as StandardArithmetic requires. Ascending order, because the buffers may overlap as widen.hpp allows.

template <NumberFormat format>
[[gnu::noinline]] void widen_all(const unsigned char* numbers, std::int64_t count, unsigned char* out) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint16_t bits;
    __builtin_memcpy(&bits, numbers + 2 * i, sizeof bits);
    const std::uint32_t wide = widened<format>(bits);
    __builtin_memcpy(out + 4 * i, &wide, sizeof wide);
  }
}

template <NumberFormat format>
[[gnu::noinline]] void narrow_all(const unsigned char* numbers, std::int64_t count, unsigned char* out) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint32_t bits;
    __builtin_memcpy(&bits, numbers + 4 * i, sizeof bits);
    const std::uint16_t half = narrowed<format>(bits);
    __builtin_memcpy(out + 2 * i, &half, sizeof half);
  }
}

}  // namespace

void widen(const void* numbers, NumberFormat format, std::int64_t count, void* out) noexcept {
  const StandardArithmetic standard;
  const auto run =
      format == NumberFormat::float16 ? widen_all<NumberFormat::float16> : widen_all<NumberFormat::bfloat16>;
  run(static_cast<const unsigned char*>(numbers), count, static_cast<unsigned char*>(out));
}

void narrow(const void* numbers, NumberFormat format, std::int64_t count, void* out) noexcept {
  const StandardArithmetic standard;
  const auto run =
      format == NumberFormat::float16 ? narrow_all<NumberFormat::float16> : narrow_all<NumberFormat::bfloat16>;
  run(static_cast<const unsigned char*>(numbers), count, static_cast<unsigned char*>(out));
}

}  // namespace bestride::inline kernels
