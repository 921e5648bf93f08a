// SPDX-License-Identifier: Apache-2.0
#pragma once
// The index arithmetic of the kernels: the user address and the packed address of the n-th word of a piece. Compiled
// for the device and for the host. The host uses the same functions to cut ranges (launch/batch) and to run the kernels
// in the tests' stand-in driver.
//
// Word numbers, counts and quotients are 32-bit, because a piece has fewer than 2^31 bytes (device/pieces.hpp cuts
// longer ones). Addresses and strides are 64-bit. The device has no integer division, and all divisors are constants of
// the piece, so a division is a multiplication (Granlund and Montgomery, PLDI'94, with dividends below 2^31 so that the
// multiplier fits 32 bits).
#include <cstdint>

#ifdef __CUDACC__
#define BESTRIDE_HOST_DEVICE __host__ __device__ __forceinline__
#define BESTRIDE_UNROLL _Pragma("unroll")
#else
#define BESTRIDE_HOST_DEVICE inline
#define BESTRIDE_UNROLL
#endif

namespace bestride::cuda {

using Number = std::uint32_t;

/// Division by a constant >= 1: quotient = (n * magic) >> (31 + shift), shift = ceil(log2 divisor). Exact for n < 2^31.
struct Divisor {
  Number divisor;
  Number magic;
  Number shift;  ///< ceil(log2 divisor) - 1, the shift after a high product; 0 for divisor 1, which needs no division
};

inline Divisor divisor_of(Number divisor) noexcept {
  if (divisor == 1) return {1, 0, 0};
  Number shift = 1;
  while ((std::uint64_t{1} << shift) < divisor) ++shift;
  const std::uint64_t numerator = std::uint64_t{1} << (31 + shift);
  return {divisor, static_cast<Number>((numerator + divisor - 1) / divisor), shift - 1};
}

BESTRIDE_HOST_DEVICE Number high_product(Number x, Number y) noexcept {
#ifdef __CUDA_ARCH__
  return __umulhi(x, y);
#else
  return static_cast<Number>(static_cast<std::uint64_t>(x) * y >> 32);
#endif
}

/// n / divisor.
BESTRIDE_HOST_DEVICE Number quotient(Number n, Divisor by) noexcept {
  return by.divisor == 1 ? n : high_product(n, by.magic) >> by.shift;
}

/// A loop as the kernel reads it. Iteration i is at i * user_stride and i * packed_stride.
struct WorkLoop {
  std::int64_t user_stride;
  std::int64_t packed_stride;
  Divisor count;  ///< >= 2
  Number spare;
};

/// The two addresses of a word, relative to those of the first byte of the piece.
struct Position {
  std::int64_t user;
  std::int64_t packed;
};

/// Adds the offset of iteration `turn` of `loop` to `position`. If `narrow`, all strides fit 32 bits, and an iteration
/// costs two 32 x 32 multiplications instead of two 64 x 32.
template <bool narrow>
BESTRIDE_HOST_DEVICE void add_loop(Position& position, const WorkLoop& loop, Number turn) noexcept {
  if (narrow) {
    position.user +=
        static_cast<std::int64_t>(static_cast<std::int32_t>(loop.user_stride)) * static_cast<std::int32_t>(turn);
    position.packed +=
        static_cast<std::int64_t>(static_cast<std::int32_t>(loop.packed_stride)) * static_cast<std::int32_t>(turn);
  } else {
    position.user += loop.user_stride * static_cast<std::int64_t>(turn);
    position.packed += loop.packed_stride * static_cast<std::int64_t>(turn);
  }
}

/// Adds the offsets of iteration `number` of a loop nest. `loops`: inner to outer. If `fixed` >= 0, the number of loops
/// is `fixed`, known at compile time; otherwise it is `loop_count`. The outermost loop needs no division: what remains
/// is its iteration.
template <bool narrow, int fixed>
BESTRIDE_HOST_DEVICE void add_loops(Position& position, const WorkLoop* loops, int loop_count, Number number) noexcept {
  if (fixed >= 0) {
    BESTRIDE_UNROLL
    for (int k = 0; k < fixed; ++k) {
      const Number above = k + 1 < fixed ? quotient(number, loops[k].count) : 0;
      add_loop<narrow>(position, loops[k], number - above * loops[k].count.divisor);
      number = above;
    }
  } else {
    for (int k = 0; k < loop_count; ++k) {
      const Number above = k + 1 < loop_count ? quotient(number, loops[k].count) : 0;
      add_loop<narrow>(position, loops[k], number - above * loops[k].count.divisor);
      number = above;
    }
  }
}

/// log2 of a granule of packed bytes. A mixed list has a table that speeds up the search for the entry e that contains
/// the byte `position` (starts[e] <= position < starts[e + 1]): granules[position / 256] is the entry of that granule's
/// first byte. One extra element after the last granule holds the last entry.
inline constexpr int granule_shift = 8;

}  // namespace bestride::cuda
