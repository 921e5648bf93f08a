// SPDX-License-Identifier: Apache-2.0
#pragma once
// Widen: converts 16-bit numbers to float32, in which they are added, and back.
//
// Pure functions: thread-safe, no allocation, no failure; any alignment; independent of the calling thread's rounding
// and flush settings. `format` is float16 or bfloat16. Counts are at least 0.
#include <cstdint>

#include "kernels/quantize/format.hpp"

namespace bestride::inline kernels {

/// Exact; NaN becomes a quiet NaN. `numbers` may be the second half of `out`.
void widen(const void* numbers, NumberFormat format, std::int64_t count, void* out) noexcept;

/// Rounds to nearest, ties to even; numbers that are too large become infinity, NaN becomes a quiet NaN. `out` may be
/// `numbers`.
void narrow(const void* numbers, NumberFormat format, std::int64_t count, void* out) noexcept;

}  // namespace bestride::inline kernels
