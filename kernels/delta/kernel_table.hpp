// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeltaKernels: what is done to one group, by instruction set, compiled as those of cpu/kernel_table.hpp. No std:: code here.
#include <cstdint>

#include "kernels/cpu/piece.hpp"

namespace bestride::delta {

inline constexpr std::int64_t chunk_bytes = 128;  ///< 64 words, a bit each
inline constexpr std::int64_t group_chunks = 64;
inline constexpr std::int64_t group_bytes = chunk_bytes * group_chunks;
/// Bytes behind the words of a group that collect may write and spread may read.
inline constexpr std::int64_t slack = 64;

struct DeltaKernels {
  /// masks[i]: the words in which chunk i differs. Returns a bit for each mask that is not 0. Whole groups only.
  std::uint64_t (*compare)(const Byte* older, const Byte* newer, std::uint64_t* masks);
  /// The words of the masks, in order; returns their end. Up to slack bytes behind it are written.
  Byte* (*collect)(const Byte* group, const std::uint64_t* masks, Byte* words);
  /// The same backwards. Up to slack bytes behind the words are read.
  void (*spread)(Byte* group, const std::uint64_t* masks, const Byte* words);
};

const DeltaKernels& scalar_delta_kernels();
#if defined(__x86_64__)
const DeltaKernels& avx2_delta_kernels();
const DeltaKernels& avx512_delta_kernels();
#endif

}  // namespace bestride::delta
