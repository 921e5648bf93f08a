// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI_Pack and MPI_Unpack where the user's buffer, the packed one, or both are device memory. No message: all of the call is ours, also
// with a GPU-aware MPI.
#include <mpi.h>

#include <cstdint>
#include <optional>

#include "interpose/back/gpu/staging.hpp"

namespace bestride {

/// Moves `count` elements between `user` and `packed` + `position`. nullopt: no device memory, or an argument that MPI is to refuse: the call goes
/// the usual way. Else the call's error, raised already; on MPI_SUCCESS *bytes is what `position` moves on by.
std::optional<int> pack_on_gpu(const char* call_name, cuda::Direction direction, void* user, std::int64_t count, MPI_Datatype type, void* packed, std::int64_t packed_size,
                               std::int64_t position, MPI_Comm comm, std::int64_t* bytes) noexcept;

}  // namespace bestride
