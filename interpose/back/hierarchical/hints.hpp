// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hints: what the application says of one communicator's collectives, by info keys. The MPI library drops keys it does not know, so they
// are taken where it is given them (MPI_Comm_set_info, MPI_Comm_dup_with_info), which all members call; there they agree on them. After
// MPI_Comm_idup_with_info they do in their first blocking collective.
//
//   bestride_quantize     off, int8, int4: instead of BESTRIDE_QUANTIZE
//   bestride_reassociate  0, 1: instead of BESTRIDE_REASSOCIATE
//   bestride_format       bfloat16, half: what the communicator's 16-bit integers are, and that its commutative user-defined operations
//                         on them add; none: they are integers
#include <mpi.h>

#include <cstdint>

namespace bestride {

struct CommHints {
  static constexpr int none = -1;
  int quantise = none;     ///< bits of a code; 0: off
  int reassociate = none;  ///< 0 or 1
  int format = none;       ///< of 16-bit integers: a NumberFormat
};

/// What `info` (or MPI_INFO_NULL) says; a value that a key can't have is said and not taken.
CommHints read_hints(MPI_Info info) noexcept;

/// How members agree on hints: each tells its words, and all settle on the greatest of each word over all members. A hint that they give
/// differently is said once and off.
inline constexpr int hint_words = 6;
void tell(const CommHints& hints, std::int64_t* words) noexcept;
void settle(CommHints& hints, const std::int64_t* greatest) noexcept;

/// `comm` is valid, and the MPI library has accepted `info` (or MPI_INFO_NULL) for it. Collective; does nothing where no collective is
/// hierarchical. A key that is not given leaves what was said before.
void take_hints(MPI_Comm comm, MPI_Info info) noexcept;

}  // namespace bestride
