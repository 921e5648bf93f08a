// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI's operations on integers, and sums of floating-point numbers, without the MPI library: the progress thread may
// call them whatever thread level the library has granted, and they are faster.
#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace bestride::inline interpose {

/// inout[i] = in[i] OP inout[i], for `count` elements of any alignment. The two do not overlap.
using NumberOperation = void (*)(const std::byte* in, std::byte* inout, std::int64_t count);

/// The function for one of MPI's operations on a predefined type; it gives the same bits as MPI_Reduce_local. nullptr:
/// there is none. The same answer on all ranks. Any thread.
NumberOperation integer_operation(MPI_Op op, MPI_Datatype type) noexcept;

/// The same for MPI_SUM of real and complex numbers of 4 or 8 bytes for each part. If both numbers are NaN, the result
/// may be the other one.
NumberOperation floating_sum(MPI_Op op, MPI_Datatype type) noexcept;

/// Bytes of a floating-point number that floating_sum() adds, of one part if it is complex; 0: another type.
std::int64_t floating_bytes(MPI_Datatype type) noexcept;

}  // namespace bestride::inline interpose
