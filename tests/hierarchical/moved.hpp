// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random collectives that move data. The expected results are computed: the packed bytes of each block depend only on
// its source and target rank.
#include <cstdint>
#include <functional>
#include <string>

#include "tests/hierarchical/job.hpp"

namespace bestride::test {

/// Runs one case, on all ranks of MPI_COMM_WORLD. Returns an error message, empty if this rank found no error. `least`:
/// minimum number of elements, unless that is too much data. `told`: receives the description of the case; tell() is
/// called after that and before the case runs.
std::string move_at_random(std::uint64_t seed, const Groups& groups, int least, std::string* told,
                           const std::function<void()>& tell);

}  // namespace bestride::test
