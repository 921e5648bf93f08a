// SPDX-License-Identifier: Apache-2.0
// Deltas for the baseline machine: the reference for all other targets.
#include "kernels/delta/kernel_table.hpp"

namespace bestride::inline kernels::delta {
namespace {

template <class T>
T read(const Byte* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "word 0 is the low one");

/// One bit per 16-bit word that is not 0, in bits 0 to 3.
std::uint64_t words_set(std::uint64_t four) {
  constexpr std::uint64_t low = 0x7fff7fff7fff7fff;
  const std::uint64_t tops = (((four & low) + low) | four) & ~low;
  return (tops >> 15) * 0x0001000200040008 >> 48 & 15;  // the products do not overlap: no carry
}

std::uint64_t compare(const Byte* older, const Byte* newer, std::uint64_t* masks) {
  std::uint64_t map = 0;
  for (int chunk = 0; chunk < group_chunks; ++chunk, older += chunk_bytes, newer += chunk_bytes) {
    std::uint64_t any = 0;
    for (int i = 0; i < chunk_bytes; i += 8) any |= read<std::uint64_t>(older + i) ^ read<std::uint64_t>(newer + i);
    std::uint64_t mask = 0;
    if (any != 0)
      for (int i = 0; i < chunk_bytes; i += 8)
        mask |= words_set(read<std::uint64_t>(older + i) ^ read<std::uint64_t>(newer + i)) << (i / 2);
    masks[chunk] = mask;
    map |= std::uint64_t{mask != 0} << chunk;
  }
  return map;
}

Byte* compact(const Byte* group, const std::uint64_t* masks, Byte* words) {
  for (int chunk = 0; chunk < group_chunks; ++chunk, group += chunk_bytes)
    for (std::uint64_t mask = masks[chunk]; mask != 0; mask &= mask - 1, words += 2)
      __builtin_memcpy(words, group + 2 * __builtin_ctzll(mask), 2);
  return words;
}

void expand(Byte* group, const std::uint64_t* masks, const Byte* words) {
  for (int chunk = 0; chunk < group_chunks; ++chunk, group += chunk_bytes)
    for (std::uint64_t mask = masks[chunk]; mask != 0; mask &= mask - 1, words += 2)
      __builtin_memcpy(group + 2 * __builtin_ctzll(mask), words, 2);
}

}  // namespace

const DeltaKernels& scalar_delta_kernels() {
  static constexpr DeltaKernels table = {compare, compact, expand};
  return table;
}

}  // namespace bestride::inline kernels::delta
