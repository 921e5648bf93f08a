// SPDX-License-Identifier: Apache-2.0
#pragma once
// The index arithmetic of the kernels: which user and packed address the n-th word of a piece has. Compiled for the device and for
// the host, where the same functions cut ranges (batch) and run the kernels of the tests' stand-in driver.
//
// Word numbers, counts and quotients are 32-bit: a piece has fewer than 2^31 bytes (pieces.hpp cuts longer ones), addresses and
// strides 64. Divisions are by constants of the piece and done by a multiplication (Granlund and Montgomery, PLDI'94, with
// dividends below 2^31 so that the multiplier fits 32 bits): the device has no integer division.
#include <cstdint>

#ifdef __CUDACC__
#define BESTRIDE_ON_DEVICE __host__ __device__ __forceinline__
#define BESTRIDE_UNROLL _Pragma("unroll")
#else
#define BESTRIDE_ON_DEVICE inline
#define BESTRIDE_UNROLL
#endif

namespace bestride::cuda {

using Number = std::uint32_t;

/// Divides by a constant >= 1: quotient = (n * magic) >> (31 + shift), shift = ceil(log2 divisor). Exact for n < 2^31.
struct Divisor {
  Number divisor;
  Number magic;
  Number shift;  ///< less 1, as used; 0 with divisor 1, which is not divided
};

inline Divisor divisor_of(Number divisor) noexcept {
  if (divisor == 1) return {1, 0, 0};
  Number shift = 1;
  while ((std::uint64_t{1} << shift) < divisor) ++shift;
  const std::uint64_t numerator = std::uint64_t{1} << (31 + shift);
  return {divisor, static_cast<Number>((numerator + divisor - 1) / divisor), shift - 1};
}

BESTRIDE_ON_DEVICE Number high_product(Number x, Number y) noexcept {
#ifdef __CUDA_ARCH__
  return __umulhi(x, y);
#else
  return static_cast<Number>(static_cast<std::uint64_t>(x) * y >> 32);
#endif
}

/// n / divisor.
BESTRIDE_ON_DEVICE Number quotient(Number n, Divisor by) noexcept {
  return by.divisor == 1 ? n : high_product(n, by.magic) >> by.shift;
}

/// A loop as the kernel reads it. Turn i lies at i * user_stride and i * packed_stride.
struct WorkLoop {
  std::int64_t user_stride;
  std::int64_t packed_stride;
  Divisor count;  ///< >= 2
  Number spare;
};

/// The two addresses of a word, relative to those of the piece's first byte.
struct Place {
  std::int64_t user;
  std::int64_t packed;
};

/// Adds what turn `turn` of `count`-loops contributes. The outermost loop needs no division: what is left is its turn.
/// `loops`: inner to outer. NARROW: all strides fit 32 bits, so a turn costs two 32 x 32 multiplications instead of two 64 x 32.
template <bool narrow>
BESTRIDE_ON_DEVICE void add_loop(Place& place, const WorkLoop& loop, Number turn) noexcept {
  if (narrow) {
    place.user += static_cast<std::int64_t>(static_cast<std::int32_t>(loop.user_stride)) * static_cast<std::int32_t>(turn);
    place.packed += static_cast<std::int64_t>(static_cast<std::int32_t>(loop.packed_stride)) * static_cast<std::int32_t>(turn);
  } else {
    place.user += loop.user_stride * static_cast<std::int64_t>(turn);
    place.packed += loop.packed_stride * static_cast<std::int64_t>(turn);
  }
}

/// `fixed` >= 0: that many loops, known when compiled; else `loop_count`.
template <bool narrow, int fixed>
BESTRIDE_ON_DEVICE void add_loops(Place& place, const WorkLoop* loops, int loop_count, Number number) noexcept {
  if (fixed >= 0) {
BESTRIDE_UNROLL
    for (int k = 0; k < fixed; ++k) {
      const Number above = k + 1 < fixed ? quotient(number, loops[k].count) : 0;
      add_loop<narrow>(place, loops[k], number - above * loops[k].count.divisor);
      number = above;
    }
  } else {
    for (int k = 0; k < loop_count; ++k) {
      const Number above = k + 1 < loop_count ? quotient(number, loops[k].count) : 0;
      add_loop<narrow>(place, loops[k], number - above * loops[k].count.divisor);
      number = above;
    }
  }
}

/// The entry of a mixed list that holds the byte `position`: starts[e] <= position < starts[e + 1]. granules[position / 256] is
/// the entry of that granule's first byte; the last granule is followed by one with the last entry.
inline constexpr int granule_shift = 8;

}  // namespace bestride::cuda
