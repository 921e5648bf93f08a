// SPDX-License-Identifier: Apache-2.0
#pragma once
// DeltaKernels: the operations on one group, per instruction set; compiled like those of cpu/kernel_table.hpp. No std::
// code here.
#include <cstdint>

#include "kernels/cpu/piece.hpp"

namespace bestride::inline kernels::delta {

inline constexpr std::int64_t chunk_bytes = 128;  ///< 64 words, one mask bit each
inline constexpr std::int64_t group_chunks = 64;
inline constexpr std::int64_t group_bytes = chunk_bytes * group_chunks;
/// Bytes after the words of a group that `compact` may write and `expand` may read.
inline constexpr std::int64_t slack = 64;

struct DeltaKernels {
  /// Sets masks[i] to the words in which chunk i differs. Returns a word with bit i set if masks[i] is not 0. Whole
  /// groups only.
  std::uint64_t (*compare)(const Byte* older, const Byte* newer, std::uint64_t* masks);
  /// Writes the words selected by the masks, in order; returns their end. Up to `slack` bytes after the end are
  /// written.
  Byte* (*compact)(const Byte* group, const std::uint64_t* masks, Byte* words);
  /// The inverse of compact. Up to `slack` bytes after the words are read.
  void (*expand)(Byte* group, const std::uint64_t* masks, const Byte* words);
};

const DeltaKernels& scalar_delta_kernels();
#if defined(__x86_64__)
const DeltaKernels& avx2_delta_kernels();
const DeltaKernels& avx512_delta_kernels();
#endif

}  // namespace bestride::inline kernels::delta
