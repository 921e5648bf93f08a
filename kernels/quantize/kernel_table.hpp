// SPDX-License-Identifier: Apache-2.0
#pragma once
// QuantizeKernels: the kernels of one instruction set, compiled like those of cpu/kernel_table.hpp. No std:: code here.
#include <cstdint>

#include "kernels/cpu/piece.hpp"

namespace bestride::inline kernels {

struct QuantizeKernels {
  using Kernel = void (*)(const Byte* in, std::int64_t count, Byte* out);
  /// Second index: 0 int4, 1 int8.
  Kernel quantize[4][2];    ///< by NumberFormat; out: codes
  Kernel dequantize[4][2];  ///< by NumberFormat; out: numbers
  Kernel add[2][2];         ///< float32, float64; out: the accumulator
};

const QuantizeKernels& scalar_quantize_kernels();
#if defined(__x86_64__)
const QuantizeKernels& avx2_quantize_kernels();
const QuantizeKernels& avx512_quantize_kernels();
#endif

}  // namespace bestride::inline kernels
