// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI's operations on integers, and sums and extremes of floating-point numbers, without the MPI library: the progress
// thread may call them whatever thread level the library has granted, and they are faster.
#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace bestride::inline interpose {

/// inout[i] = in[i] OP inout[i], for `count` elements of any alignment. The two do not overlap.
using NumberOperation = void (*)(const std::byte* in, std::byte* inout, std::int64_t count);

/// The function for one of MPI's operations on a predefined type; it gives the same bits as MPI_Reduce_local. nullptr:
/// there is none. The same answer on all ranks. Any thread.
NumberOperation integer_operation(MPI_Op op, MPI_Datatype type) noexcept;

/// The function for MPI_SUM of real and complex numbers of 4 or 8 bytes for each part; it gives the same bits as
/// MPI_Reduce_local, except that of two NaNs it may keep the other one. nullptr: another operation or type.
NumberOperation floating_sum(MPI_Op op, MPI_Datatype type) noexcept;
/// True if one of `count` results of floating_sum() is a NaN.
bool any_nan(const std::byte* results, std::int64_t count, MPI_Datatype type) noexcept;
/// True if one of `count` elements is a NaN, infinite, or so large that a sum of `ranks` such numbers may be. If this
/// is false on all of them, no partial sum is a NaN, whatever the rounding mode of each rank.
bool sum_may_be_nan(const std::byte* elements, std::int64_t count, MPI_Datatype type, int ranks) noexcept;

/// MPI_MAX and MPI_MIN of real numbers of 4 or 8 bytes. The bits of a maximum depend on the order of the operands only
/// if a NaN is among them, or if it is zero and zeros of both signs are among them (and, for threads that treat
/// denormal numbers as zero, if these are). For such operands the function gives a number that depends_on_order(),
/// whatever the order and whatever other operands follow. All other results have the bits of the library's. nullptr:
/// another operation or type.
NumberOperation floating_extreme(MPI_Op op, MPI_Datatype type) noexcept;
/// True if one of `count` results of floating_extreme() is a NaN, -0 or denormal. `type`: that of the operands.
bool depends_on_order(const std::byte* results, std::int64_t count, MPI_Datatype type) noexcept;

/// Bytes of a floating-point number that floating_sum() adds, of one part if it is complex; 0: another type.
std::int64_t floating_bytes(MPI_Datatype type) noexcept;

}  // namespace bestride::inline interpose
