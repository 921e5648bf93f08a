// SPDX-License-Identifier: Apache-2.0
// Deltas with AVX-512 BW and VBMI2: half a chunk is one vector, and its mask is a mask register.
#include <immintrin.h>

#include "kernels/delta/kernel_table.hpp"

namespace bestride::inline kernels::delta {
namespace {

std::uint64_t compare(const Byte* older, const Byte* newer, std::uint64_t* masks) {
  std::uint64_t map = 0;
  for (int chunk = 0; chunk < group_chunks; ++chunk, older += chunk_bytes, newer += chunk_bytes) {
    const std::uint64_t low = _mm512_cmpneq_epi16_mask(_mm512_loadu_si512(older), _mm512_loadu_si512(newer));
    const std::uint64_t high = _mm512_cmpneq_epi16_mask(_mm512_loadu_si512(older + 64), _mm512_loadu_si512(newer + 64));
    masks[chunk] = low | high << 32;
    map |= std::uint64_t{(low | high) != 0} << chunk;
  }
  return map;
}

// Compresses in a register and stores the whole register, because compressing stores are microcoded on some machines.
[[gnu::always_inline]] inline Byte* collect_half(const Byte* half, std::uint32_t mask, Byte* words) {
  _mm512_storeu_si512(words, _mm512_maskz_compress_epi16(mask, _mm512_loadu_si512(half)));
  return words + 2 * _mm_popcnt_u32(mask);
}

Byte* compact(const Byte* group, const std::uint64_t* masks, Byte* words) {
  for (int chunk = 0; chunk < group_chunks; ++chunk, group += chunk_bytes) {
    if (masks[chunk] == 0) continue;
    words = collect_half(group, static_cast<std::uint32_t>(masks[chunk]), words);
    words = collect_half(group + 64, static_cast<std::uint32_t>(masks[chunk] >> 32), words);
  }
  return words;
}

[[gnu::always_inline]] inline const Byte* spread_half(Byte* half, std::uint32_t mask, const Byte* words) {
  _mm512_storeu_si512(half, _mm512_mask_expand_epi16(_mm512_loadu_si512(half), mask, _mm512_loadu_si512(words)));
  return words + 2 * _mm_popcnt_u32(mask);
}

void expand(Byte* group, const std::uint64_t* masks, const Byte* words) {
  for (int chunk = 0; chunk < group_chunks; ++chunk, group += chunk_bytes) {
    if (masks[chunk] == 0) continue;
    words = spread_half(group, static_cast<std::uint32_t>(masks[chunk]), words);
    words = spread_half(group + 64, static_cast<std::uint32_t>(masks[chunk] >> 32), words);
  }
}

}  // namespace

const DeltaKernels& avx512_delta_kernels() {
  static constexpr DeltaKernels table = {compare, compact, expand};
  return table;
}

}  // namespace bestride::inline kernels::delta
