// SPDX-License-Identifier: Apache-2.0
#pragma once
// QuantiseKernels: the kernels of one instruction set, compiled like those of cpu/kernel_table.hpp. No std:: code here.
#include <cstdint>

#include "kernels/cpu/piece.hpp"

namespace bestride::inline kernels {

struct QuantiseKernels {
  using Kernel = void (*)(const Byte* in, std::int64_t count, Byte* out);
  /// Second index: 0 int4, 1 int8.
  Kernel quantise[4][2];    ///< by NumberFormat; out: codes
  Kernel dequantise[4][2];  ///< by NumberFormat; out: numbers
  Kernel add[2][2];         ///< float32, float64; out: the accumulator
};

const QuantiseKernels& scalar_quantise_kernels();
#if defined(__x86_64__)
const QuantiseKernels& avx2_quantise_kernels();
const QuantiseKernels& avx512_quantise_kernels();
#endif

}  // namespace bestride::inline kernels
