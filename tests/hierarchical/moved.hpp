// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random collectives that move data. Their results are known beforehand: the packed bytes of each block follow from
// its source and target rank.
#include <cstdint>
#include <functional>
#include <string>

#include "tests/hierarchical/job.hpp"

namespace bestride::test {

/// One case, on all ranks of MPI_COMM_WORLD alike. Empty if it went well on this rank, else what was wrong. `least`:
/// elements, where that is not too much. `told`: what the case is; then tell() is called, before anything happens.
std::string move_at_random(std::uint64_t seed, const Groups& groups, int least, std::string* told,
                           const std::function<void()>& tell);

}  // namespace bestride::test
