// SPDX-License-Identifier: Apache-2.0
#pragma once
// BESTRIDE_PARANOID: our packing compared with the MPI library's own, in production. A difference is said once and corrected.
#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace bestride {

/// `packed` was packed by us from `user`. If MPI packs otherwise, MPI's bytes are put there. Does nothing for MPI_DATATYPE_NULL,
/// for sizes beyond an int, and without memory.
void check_packed(std::byte* packed, std::int64_t bytes, const void* user, std::int64_t count, MPI_Datatype type) noexcept;

/// `packed` was unpacked by us into `user`. If MPI packs `user` to other bytes, MPI unpacks `packed`.
void check_unpacked(std::byte* packed, std::int64_t bytes, void* user, std::int64_t count, MPI_Datatype type) noexcept;

}  // namespace bestride
