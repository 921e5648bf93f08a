// SPDX-License-Identifier: Apache-2.0
#include "collectives/quantized/quantized_sum.hpp"

#include <algorithm>

#include "kernels/quantize/quantize.hpp"
#include "kernels/quantize/widen.hpp"

namespace bestride::inline collectives {
namespace {

/// Staging and slots are aligned for all number formats, and pieces begin at element boundaries.
template <class Number>
void add(const std::byte* in, std::byte* inout, std::int64_t bytes) noexcept {
  const auto* from = reinterpret_cast<const Number*>(in);
  auto* to = reinterpret_cast<Number*>(inout);
  const std::int64_t count = bytes / static_cast<std::int64_t>(sizeof(Number));
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

QuantizedCoding::QuantizedCoding(NumberFormat accumulator, CodeBits bits) noexcept
    : accumulator_(accumulator), bits_(bits) {
  block_bytes = quantized_block_size(bits) * number_bytes(accumulator);
}

std::int64_t QuantizedCoding::coded_bytes(std::int64_t bytes) const noexcept {
  return quantized_bytes(bytes / number_bytes(accumulator_), accumulator_, bits_);
}

void QuantizedCoding::encode(const std::byte* piece, std::int64_t bytes, std::byte* coded) const noexcept {
  quantize(piece, accumulator_, bytes / number_bytes(accumulator_), bits_, coded);
}

void QuantizedCoding::combine(const std::byte* coded, std::byte* inout, std::int64_t bytes) const noexcept {
  const std::int64_t count = bytes / number_bytes(accumulator_);
  if (accumulator_ == NumberFormat::float64)
    dequantize_add(coded, bits_, count, reinterpret_cast<double*>(inout));
  else
    dequantize_add(coded, bits_, count, reinterpret_cast<float*>(inout));
}

NumberSum::NumberSum(NumberFormat accumulator, const WireCoding& given) noexcept
    : doubles_(accumulator == NumberFormat::float64) {
  element_bytes = number_bytes(accumulator);
  coding = &given;
}

void NumberSum::combine(const std::byte* in, std::byte* inout, std::int64_t bytes) const noexcept {
  doubles_ ? add<double>(in, inout, bytes) : add<float>(in, inout, bytes);
}

void WidenedVectors::read(int node, Range range, void* to) const noexcept {
  const std::int64_t half = range.length() / 2;
  inner_.read(node, {range.first / 2, range.last / 2}, static_cast<std::byte*>(to) + half);
  widen(static_cast<std::byte*>(to) + half, format_, half / 2, to);
}

void WidenedVectors::write(int node, Range range, const void* from) const noexcept {
  std::byte rounded[1024];
  constexpr std::int64_t most = 2 * static_cast<std::int64_t>(sizeof rounded);
  for (std::int64_t first = range.first; first < range.last; first += most) {
    const std::int64_t last = std::min(first + most, range.last);
    narrow(static_cast<const std::byte*>(from) + (first - range.first), format_, (last - first) / 4, rounded);
    inner_.write(node, {first / 2, last / 2}, rounded);
  }
}

}  // namespace bestride::inline collectives
