// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize/quantize.hpp"

#include "kernels/quantize/environment.hpp"
#include "kernels/quantize/kernel_table.hpp"

namespace bestride::inline kernels {
namespace {

const QuantizeKernels& kernels_of(Isa isa) noexcept {
#if defined(__x86_64__)
  if (isa > widest_isa()) isa = widest_isa();
  if (isa == Isa::avx512) return avx512_quantize_kernels();
  if (isa == Isa::avx2) return avx2_quantize_kernels();
#endif
  return scalar_quantize_kernels();
}

void run(QuantizeKernels::Kernel kernel, const void* in, std::int64_t count, void* out) noexcept {
  if (count <= 0) return;
  const StandardArithmetic standard;
  kernel(static_cast<const Byte*>(in), count, static_cast<Byte*>(out));
}

int index(NumberFormat format) noexcept { return static_cast<int>(format); }
int index(CodeBits bits) noexcept { return bits == CodeBits::int8; }

}  // namespace

std::int64_t quantized_block_size(CodeBits bits) noexcept {
  return bits == CodeBits::int8 ? quantized_block<CodeBits::int8> : quantized_block<CodeBits::int4>;
}

std::int64_t number_bytes(NumberFormat format) noexcept {
  return format == NumberFormat::float64 ? 8 : format == NumberFormat::float32 ? 4 : 2;
}

std::int64_t quantized_bytes(std::int64_t count, NumberFormat format, CodeBits bits) noexcept {
  if (count <= 0) return 0;
  const std::int64_t block = quantized_block_size(bits);
  const std::int64_t blocks = count / block + (count % block != 0);
  const std::int64_t codes = bits == CodeBits::int8 ? count : count / 2 + count % 2;
  return blocks * (format == NumberFormat::float64 ? 8 : 4) + codes;
}

void quantize(const void* numbers, NumberFormat format, std::int64_t count, CodeBits bits, void* out,
              Isa isa) noexcept {
  run(kernels_of(isa).quantize[index(format)][index(bits)], numbers, count, out);
}

void dequantize(const void* quantized, CodeBits bits, std::int64_t count, NumberFormat format, void* out,
                Isa isa) noexcept {
  run(kernels_of(isa).dequantize[index(format)][index(bits)], quantized, count, out);
}

void dequantize_add(const void* quantized, CodeBits bits, std::int64_t count, float* accumulator, Isa isa) noexcept {
  run(kernels_of(isa).add[0][index(bits)], quantized, count, accumulator);
}

void dequantize_add(const void* quantized, CodeBits bits, std::int64_t count, double* accumulator, Isa isa) noexcept {
  run(kernels_of(isa).add[1][index(bits)], quantized, count, accumulator);
}

}  // namespace bestride::inline kernels
