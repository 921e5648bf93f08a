// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predefined datatypes: their sizes and kinds, queried from the MPI library once. The table holds every predefined
// datatype without gaps. So a handle that is neither here nor in the TypeRegistry is uncommitted or invalid.
#include <mpi.h>

#include <cstdint>

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
/// nullptr: `type` is not predefined, or has gaps and is in the TypeRegistry. After read_predefined(); any thread.
const Predefined* predefined(MPI_Datatype type) noexcept;
/// Calls `visit` with every type but those of the kinds other and pair. After read_predefined().
void for_each_predefined_number(void (*visit)(MPI_Datatype)) noexcept;
/// True for MPI_DOUBLE_INT and the other pair types with gaps.
bool is_pair_with_gaps(MPI_Datatype type) noexcept;
/// Queries the sizes from the library, once: at the end of MPI_Init or MPI_Session_init.
void read_predefined() noexcept;

}  // namespace bestride::inline interpose
