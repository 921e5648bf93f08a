// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI's operations on integers, without the MPI library: the progress thread may call them whatever thread level the
// library has granted.
#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace bestride::inline interpose {

/// inout[i] = in[i] OP inout[i], for `count` elements of any alignment. The two do not overlap.
using IntegerOperation = void (*)(const std::byte* in, std::byte* inout, std::int64_t count);

/// The function for one of MPI's operations on a predefined type; it gives the same bits as MPI_Reduce_local. nullptr:
/// there is none. The same answer on all ranks. Any thread.
IntegerOperation integer_operation(MPI_Op op, MPI_Datatype type) noexcept;

}  // namespace bestride::inline interpose
