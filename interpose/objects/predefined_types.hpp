// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predefined datatypes: their sizes and kinds, queried from the MPI library once. The table holds every predefined
// datatype without gaps. So a handle that is neither here nor in the TypeRegistry is uncommitted or invalid.
#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "interpose/mpi/handle_bits.hpp"

namespace bestride::inline interpose {

enum class NumberKind : unsigned char {
  integer,  ///< includes MPI_CHAR, MPI_AINT, MPI_COUNT and MPI_OFFSET
  floating,
  complex,
  logical,
  bytes,      ///< MPI_BYTE
  character,  ///< MPI_CHARACTER: its reductions are left to the MPI library, as those of the kinds below
  other,      ///< MPI_WCHAR, MPI_PACKED, numbers of unusual sizes
  pair,       ///< a value and an index, without gaps
};

struct Predefined {
  NumberKind kind;
  std::int64_t size;  ///< in bytes; equals the extent
};

/// Open addressing. In static storage rather than on the heap: an allocation could fail on one rank only.
struct alignas(32) PredefinedSlot {
  MPI_Datatype type{};
  Predefined known{NumberKind::other, 0};  ///< size 0: a vacant slot
  bool vacant() const noexcept { return known.size == 0; }
};
inline constexpr std::size_t predefined_slots = 256;  ///< at least twice the number of predefined types
extern PredefinedSlot predefined_table[predefined_slots];
inline std::size_t predefined_slot(MPI_Datatype type) noexcept {
  return static_cast<std::size_t>((bits_of(type) * 0x9E3779B97F4A7C15u) >> 32) % predefined_slots;
}

/// nullptr: `type` is not predefined, or has gaps and is in the TypeRegistry. After read_predefined(); any thread.
inline const Predefined* predefined(MPI_Datatype type) noexcept {
  for (std::size_t slot = predefined_slot(type); !predefined_table[slot].vacant(); slot = (slot + 1) % predefined_slots)
    if (predefined_table[slot].type == type) return &predefined_table[slot].known;
  return nullptr;
}
/// Calls `visit` with every type but those of the kinds other and pair. After read_predefined().
void for_each_predefined_number(void (*visit)(MPI_Datatype)) noexcept;
/// True for MPI_DOUBLE_INT and the other pair types with gaps.
bool is_pair_with_gaps(MPI_Datatype type) noexcept;
/// Queries the sizes from the library, once: at the end of MPI_Init or MPI_Session_init.
void read_predefined() noexcept;

}  // namespace bestride::inline interpose
