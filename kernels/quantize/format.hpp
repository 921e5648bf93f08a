// SPDX-License-Identifier: Apache-2.0
#pragma once
// The formats of numbers and codes, and the layout of a block (docs/quantized.md). Included by sources compiled for
// wider instruction sets than the baseline: no std:: code here.
#include <cstdint>

namespace bestride::inline kernels {

enum class NumberFormat : std::uint8_t { float32, float64, float16, bfloat16 };  // float16: IEEE binary16
enum class CodeBits : std::uint8_t { int4 = 4, int8 = 8 };

/// Numbers that share one scale. With these sizes the scales cost 1.6 % of int8 codes and 12.5 % of int4 codes. A
/// larger block saves little space, and its largest number, which determines the error of all numbers, is larger.
template <CodeBits bits>
inline constexpr std::int64_t quantized_block = bits == CodeBits::int8 ? 256 : 64;

/// Bytes of a block's scale: the largest magnitude, as float64 for float64, as float32 for all other formats, which
/// therefore share one encoding.
template <NumberFormat format>
inline constexpr std::int64_t scale_bytes = format == NumberFormat::float64 ? 8 : 4;

/// The code of the largest magnitude. In blocks with a NaN or an infinity this code means infinity, and the largest
/// finite magnitude has the code below.
template <CodeBits bits>
inline constexpr int top_code = bits == CodeBits::int8 ? 127 : 7;

}  // namespace bestride::inline kernels
