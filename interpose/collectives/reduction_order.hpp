// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which reductions give the same bits in any order of application.
#include <mpi.h>

namespace bestride::inline interpose {

/// In which order a reduction may be applied.
enum class Reassociation : unsigned char {
  in_any_order,
  in_any_order_if_ordinary,  ///< unless the result depends_on_order() (number_operations.hpp)
  in_one_order,              ///< only if the user permits different bits (BESTRIDE_REASSOCIATE)
  in_one_order_in_the_call,  ///< the same, but the application may free the operation after a nonblocking call has
                             ///< returned
  by_mpi,                    ///< only the MPI library can apply it: not commutative, or unknown
};
/// Any order: all operations on integers; logical and bitwise operations on any numbers. Not the minimum and maximum of
/// floating-point numbers: those of NaN and a number, or of -0 and 0, are the operand that the library's algorithm
/// takes first, which may differ between ranks. If the operation does not fit the type, the MPI library reports it.
/// `op` may be any handle.
Reassociation reassociation_of(MPI_Op op, MPI_Datatype type) noexcept;

}  // namespace bestride::inline interpose
