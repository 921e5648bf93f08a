// SPDX-License-Identifier: Apache-2.0
#pragma once
// BESTRIDE_PARANOID: compares Bestride's packing with the MPI library's, in production. A difference is reported once
// and corrected.
#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace bestride::inline interpose {

/// `packed` was packed by Bestride from `user`. If MPI packs different bytes, they replace those in `packed`. Does
/// nothing for MPI_DATATYPE_NULL, for sizes beyond an int, and without memory.
void check_packed(std::byte* packed, std::int64_t bytes, const void* user, std::int64_t count,
                  MPI_Datatype type) noexcept;

/// `packed` was unpacked by Bestride into `user`. If MPI packs `user` to different bytes, MPI unpacks `packed`.
void check_unpacked(std::byte* packed, std::int64_t bytes, void* user, std::int64_t count, MPI_Datatype type) noexcept;

}  // namespace bestride::inline interpose
