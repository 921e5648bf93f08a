// SPDX-License-Identifier: Apache-2.0
#pragma once
// Quantise: numbers as int8 or int4 codes with one scale for each block, after ZeRO++ (arXiv 2306.10209). Lossy, so only for who asked.
//
// A block is 256 numbers (int8) or 64 (int4). With M the largest finite magnitude of the block and L the top code (127, 7):
//   a number x comes back as y with |y - x| <= M / (2 L) + half a unit in the last place of y in its format + e M, where e = 2^-50 is
//   left of the arithmetic, 2^-24 for the formats of 16 bits
//   the number of largest magnitude comes back exactly, so do blocks of equal numbers and blocks of c, 0 and -c; -0 comes back as +0
//   denormal numbers keep the bound; a block whose M is at most L times the least denormal number comes back exactly
//   NaN comes back as a quiet NaN, infinities as themselves; the finite numbers of such a block keep the bound with L = 126 or 6
// Size: docs/quantised.md has the table; of float32's bytes int8 takes 0.254 and int4 0.141.
//
// The result depends on the arguments alone: not on the instruction set, and not on rounding, flush-to-zero or trap settings of the
// calling thread, which are put aside for the call. Bytes are in the machine's order. Pure functions: thread-safe, no allocation, no
// failure. Numbers and codes may lie at any alignment and must not overlap; counts are at least 0 and at most 2^56.
#include <cstdint>

#include "kernels/isa.hpp"
#include "kernels/quantise/format.hpp"

namespace bestride {

/// Bytes of `count` quantised numbers: an exact size, whatever the numbers are. Numbers up to a multiple of the block's length take
/// a multiple of its bytes, so a message can be cut there and each part quantised by itself.
std::int64_t quantised_bytes(std::int64_t count, NumberFormat format, CodeBits bits) noexcept;

/// 256 or 64: numbers in a block.
std::int64_t quantised_block_size(CodeBits bits) noexcept;

/// Bytes of one number: 4, 8, 2, 2.
std::int64_t number_bytes(NumberFormat format) noexcept;

/// Writes quantised_bytes() bytes to `out`.
void quantise(const void* numbers, NumberFormat format, std::int64_t count, CodeBits bits, void* out, Isa isa = chosen_isa()) noexcept;

/// Reads quantised_bytes() bytes, writes `count` numbers. `format` is the one the numbers had, or, if that was not float64, any other but
/// float64: what was quantised as float32 may come back as bfloat16. Bytes of any content are read without harm.
void dequantise(const void* quantised, CodeBits bits, std::int64_t count, NumberFormat format, void* out, Isa isa = chosen_isa()) noexcept;

/// accumulator[i] += number i: the same as dequantise() into float32, or float64, and one addition. The float form is for numbers of all
/// formats but float64, the double form for float64.
void dequantise_add(const void* quantised, CodeBits bits, std::int64_t count, float* accumulator, Isa isa = chosen_isa()) noexcept;
void dequantise_add(const void* quantised, CodeBits bits, std::int64_t count, double* accumulator, Isa isa = chosen_isa()) noexcept;

}  // namespace bestride
