// SPDX-License-Identifier: Apache-2.0
#pragma once
// Quantize: numbers as int8 or int4 codes with one scale per block, after ZeRO++ (arXiv 2306.10209). Lossy, so opt-in.
//
// A block is 256 numbers (int8) or 64 (int4). With M the largest finite magnitude of the block and L the top code (127,
// 7):
// - A number x is decoded as y with |y - x| <= M / (2 L) + half a unit in the last place of y in its format + e M,
//   where e is the error of the arithmetic: 2^-50, or 2^-24 for the 16-bit formats.
// - The number of largest magnitude is reproduced exactly, and so are blocks of equal numbers and blocks of c, 0 and
//   -c. -0 becomes +0.
// - Denormal numbers keep the bound. A block whose M is at most L times the smallest denormal number is reproduced
//   exactly.
// - NaN is decoded as a quiet NaN, infinities as themselves. The finite numbers of such a block keep the bound with L =
//   126 or 6.
// Sizes: see the table in docs/quantized.md. Relative to float32, int8 takes 0.254 and int4 0.141 of the bytes.
//
// The result depends only on the arguments: not on the instruction set, and not on the rounding, flush-to-zero or trap
// settings of the calling thread, which are replaced during the call. Bytes are in native order. Pure functions:
// thread-safe, no allocation, no failure. Numbers and codes may have any alignment and must not overlap; counts are at
// least 0 and at most 2^56.
#include <cstdint>

#include "kernels/isa.hpp"
#include "kernels/quantize/format.hpp"

namespace bestride::inline kernels {

/// Bytes of `count` quantized numbers: an exact size, independent of the values. A multiple of the block length takes a
/// multiple of the block's bytes, so a message can be cut there and each part quantized separately.
std::int64_t quantized_bytes(std::int64_t count, NumberFormat format, CodeBits bits) noexcept;

/// Numbers per block: 256 or 64.
std::int64_t quantized_block_size(CodeBits bits) noexcept;

/// Bytes per number: 4, 8, 2, 2.
std::int64_t number_bytes(NumberFormat format) noexcept;

/// Writes quantized_bytes() bytes to `out`.
void quantize(const void* numbers, NumberFormat format, std::int64_t count, CodeBits bits, void* out,
              Isa isa = chosen_isa()) noexcept;

/// Reads quantized_bytes() bytes, writes `count` numbers. `format` is the format of the original numbers; if that is
/// not float64, it may be any other format except float64: numbers quantized as float32 may be decoded as bfloat16. Any
/// content of the bytes is safe.
void dequantize(const void* quantized, CodeBits bits, std::int64_t count, NumberFormat format, void* out,
                Isa isa = chosen_isa()) noexcept;

/// accumulator[i] += number i: the same as dequantize() into float32 or float64, followed by one addition. The float
/// form is for numbers of all formats except float64, the double form for float64.
void dequantize_add(const void* quantized, CodeBits bits, std::int64_t count, float* accumulator,
                    Isa isa = chosen_isa()) noexcept;
void dequantize_add(const void* quantized, CodeBits bits, std::int64_t count, double* accumulator,
                    Isa isa = chosen_isa()) noexcept;

}  // namespace bestride::inline kernels
