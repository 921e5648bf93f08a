// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantise/quantise.hpp"

#include "kernels/quantise/environment.hpp"
#include "kernels/quantise/kernel_table.hpp"

namespace bestride::inline kernels {
namespace {

const QuantiseKernels& kernels_of(Isa isa) noexcept {
#if defined(__x86_64__)
  if (isa > widest_isa()) isa = widest_isa();
  if (isa == Isa::avx512) return avx512_quantise_kernels();
  if (isa == Isa::avx2) return avx2_quantise_kernels();
#endif
  return scalar_quantise_kernels();
}

void run(QuantiseKernels::Kernel kernel, const void* in, std::int64_t count, void* out) noexcept {
  if (count <= 0) return;
  const StandardArithmetic standard;
  kernel(static_cast<const Byte*>(in), count, static_cast<Byte*>(out));
}

int index(NumberFormat format) noexcept { return static_cast<int>(format); }
int index(CodeBits bits) noexcept { return bits == CodeBits::int8; }

}  // namespace

std::int64_t quantised_block_size(CodeBits bits) noexcept {
  return bits == CodeBits::int8 ? quantised_block<CodeBits::int8> : quantised_block<CodeBits::int4>;
}

std::int64_t number_bytes(NumberFormat format) noexcept {
  return format == NumberFormat::float64 ? 8 : format == NumberFormat::float32 ? 4 : 2;
}

std::int64_t quantised_bytes(std::int64_t count, NumberFormat format, CodeBits bits) noexcept {
  if (count <= 0) return 0;
  const std::int64_t block = quantised_block_size(bits);
  const std::int64_t blocks = count / block + (count % block != 0);
  const std::int64_t codes = bits == CodeBits::int8 ? count : count / 2 + count % 2;
  return blocks * (format == NumberFormat::float64 ? 8 : 4) + codes;
}

void quantise(const void* numbers, NumberFormat format, std::int64_t count, CodeBits bits, void* out,
              Isa isa) noexcept {
  run(kernels_of(isa).quantise[index(format)][index(bits)], numbers, count, out);
}

void dequantise(const void* quantised, CodeBits bits, std::int64_t count, NumberFormat format, void* out,
                Isa isa) noexcept {
  run(kernels_of(isa).dequantise[index(format)][index(bits)], quantised, count, out);
}

void dequantise_add(const void* quantised, CodeBits bits, std::int64_t count, float* accumulator, Isa isa) noexcept {
  run(kernels_of(isa).add[0][index(bits)], quantised, count, accumulator);
}

void dequantise_add(const void* quantised, CodeBits bits, std::int64_t count, double* accumulator, Isa isa) noexcept {
  run(kernels_of(isa).add[1][index(bits)], quantised, count, accumulator);
}

}  // namespace bestride::inline kernels
