// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures the message size with which a long exchange between the first two nodes of a job is fastest.
#include <cstdint>

#include "perfmodel/calibrate/common/job_topology.hpp"

namespace bestride::inline perfmodel {

/// LinkCosts::piece_bytes: of the powers of two from 16 KiB to 4 MiB, the smallest whose time is within 1/30 of the
/// best. The ranks of both nodes send and receive at the same time, as in a collective. Collective over MPI_COMM_WORLD;
/// all ranks get the same result. `rounds`: how often all sizes are measured; each measurement takes a fifth of a
/// second on a slow link. Needs at least two nodes. May throw std::bad_alloc.
std::int64_t measure_piece(const JobTopology& place, int rounds);

}  // namespace bestride::inline perfmodel
