// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI_Pack and MPI_Unpack with device memory as the user's buffer, the packed buffer, or both. No message is sent, so
// Bestride does the whole call, also with a GPU-aware MPI.
#include <mpi.h>

#include <cstdint>
#include <optional>

#include "interpose/device/staging.hpp"

namespace bestride::inline interpose {

/// Moves `count` elements between `user` and `packed` + `position`. nullopt: no device memory, or an argument that MPI
/// has to reject; the call continues on the host path. Otherwise the call's error, already raised; on MPI_SUCCESS
/// *bytes is the number of bytes by which `position` advances.
std::optional<int> pack_on_gpu(const char* call_name, Direction direction, void* user, std::int64_t count,
                               MPI_Datatype type, void* packed, std::int64_t packed_size, std::int64_t position,
                               MPI_Comm comm, std::int64_t* bytes) noexcept;

}  // namespace bestride::inline interpose
