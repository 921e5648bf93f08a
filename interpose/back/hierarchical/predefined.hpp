// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predefined datatypes and operations: what they are, and so which reductions give the same bits in any order.
#include <mpi.h>

#include <cstdint>

namespace bestride {

enum class NumberKind : unsigned char {
  integer,   ///< with MPI_CHAR, MPI_AINT, MPI_COUNT, MPI_OFFSET
  floating,
  complex,
  logical,
  bytes,     ///< MPI_BYTE
  text,      ///< MPI_WCHAR, MPI_CHARACTER, MPI_PACKED: no operation goes with them
  pair,      ///< of a value and an index, without gaps
};

struct Predefined {
  NumberKind kind;
  std::int64_t size;  ///< bytes; also its extent
};
/// nullptr: not one of those, or one with gaps (those are found where committed types are). After read_predefined().
const Predefined* predefined(MPI_Datatype type) noexcept;
/// MPI_DOUBLE_INT and its like.
bool is_pair_with_gaps(MPI_Datatype type) noexcept;
/// Asks the library for their sizes, once, in MPI_Init.
void read_predefined() noexcept;

/// In what order a reduction may be applied.
enum class Applied : unsigned char {
  in_any_order,
  in_one_order,  ///< only where the user allows that bits change (BESTRIDE_REASSOCIATE)
  in_one_order_in_the_call,  ///< the same, but the application may free the operation once a nonblocking call has returned
  by_mpi,        ///< only the MPI library can: not commutative, or not known
};
/// Of whole numbers all; of any numbers the least and the greatest, logical and bitwise ones. Greatest and least of floats: as far
/// as the library's own order is defined, which for -0 and NaN it is not. Where the
/// operation does not go with the type, it is the MPI library that says so. `op` is valid or MPI_OP_NULL.
Applied how_applied(MPI_Op op, MPI_Datatype type) noexcept;

}  // namespace bestride
