// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures in which pieces a long exchange between the first two nodes of a job is fastest.
#include <cstdint>

#include "perfmodel/measure/job_place.hpp"

namespace bestride {

/// LinkCosts::piece_bytes: of 16 KiB to 4 MiB by 2, the shortest that is within a thirtieth of the fastest. The ranks of both nodes send and receive at
/// once, as a collective does. Collective over MPI_COMM_WORLD, the same on all ranks. `rounds`: of all lengths; each takes a fifth of a second on a
/// slow link. At least two nodes. May throw std::bad_alloc.
std::int64_t measure_piece(const JobPlace& place, int rounds);

}  // namespace bestride
