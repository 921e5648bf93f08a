// SPDX-License-Identifier: Apache-2.0
// Deltas for the baseline machine: what every other target is compared with.
#include "kernels/delta/kernel_table.hpp"

namespace bestride::delta {
namespace {

constexpr int words_per_chunk = 64;

template <class T>
T read(const Byte* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

std::uint64_t compare(const Byte* older, const Byte* newer, std::uint64_t* masks) {
  std::uint64_t map = 0;
  for (int chunk = 0; chunk < group_chunks; ++chunk, older += chunk_bytes, newer += chunk_bytes) {
    std::uint64_t any = 0;
    for (int i = 0; i < chunk_bytes; i += 8) any |= read<std::uint64_t>(older + i) ^ read<std::uint64_t>(newer + i);
    std::uint64_t mask = 0;
    if (any != 0)
      for (int word = 0; word < words_per_chunk; ++word)
        mask |= std::uint64_t{read<std::uint16_t>(older + 2 * word) != read<std::uint16_t>(newer + 2 * word)} << word;
    masks[chunk] = mask;
    map |= std::uint64_t{mask != 0} << chunk;
  }
  return map;
}

Byte* collect(const Byte* group, const std::uint64_t* masks, Byte* words) {
  for (int chunk = 0; chunk < group_chunks; ++chunk, group += chunk_bytes)
    for (std::uint64_t mask = masks[chunk]; mask != 0; mask &= mask - 1, words += 2)
      __builtin_memcpy(words, group + 2 * __builtin_ctzll(mask), 2);
  return words;
}

void spread(Byte* group, const std::uint64_t* masks, const Byte* words) {
  for (int chunk = 0; chunk < group_chunks; ++chunk, group += chunk_bytes)
    for (std::uint64_t mask = masks[chunk]; mask != 0; mask &= mask - 1, words += 2)
      __builtin_memcpy(group + 2 * __builtin_ctzll(mask), words, 2);
}

}  // namespace

const DeltaKernels& scalar_delta_kernels() {
  static constexpr DeltaKernels table = {compare, collect, spread};
  return table;
}

}  // namespace bestride::delta
