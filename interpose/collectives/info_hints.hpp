// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hints that the application sets for the collectives of one communicator, by info keys. The MPI library drops keys
// that it does not know, so they are read in the calls that set them (MPI_Comm_set_info, MPI_Comm_dup_with_info), which
// all members make; in these calls the members agree on them. After MPI_Comm_idup_with_info they agree in the first
// blocking collective of the new communicator.
//
//   bestride_quantize     off, int8, int4: instead of BESTRIDE_QUANTIZE
//   bestride_reassociate  0, 1: instead of BESTRIDE_REASSOCIATE
//   bestride_format       bfloat16, half: the communicator's 16-bit integers are such numbers, and its commutative
//                         user-defined operations add them; none: they are integers
#include <mpi.h>

#include <cstdint>

#include "interpose/collectives/comm_collectives.hpp"

namespace bestride::inline interpose {

/// Reads `info` (or MPI_INFO_NULL). An invalid value is reported and ignored.
CommHints read_hints(MPI_Info info) noexcept;

/// How members agree on hints: each member writes its words, and all apply the maximum of each word over all members. A
/// hint whose value differs between members is reported once and turned off.
inline constexpr int hint_words = 6;
void write_words(const CommHints& hints, std::int64_t* words) noexcept;
void apply_agreed(CommHints& hints, const std::int64_t* greatest) noexcept;

/// `comm` is valid, and the MPI library has accepted `info` (or MPI_INFO_NULL) for it. Collective; does nothing if the
/// job has no hierarchical collectives. A key that is not given keeps its previous value.
void apply_hints(MPI_Comm comm, MPI_Info info) noexcept;

}  // namespace bestride::inline interpose
