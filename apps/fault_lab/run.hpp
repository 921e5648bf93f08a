// SPDX-License-Identifier: Apache-2.0
#pragma once
// The steps of the program.
#include "job.hpp"

namespace fault_lab {

struct Outcome {
  std::uint64_t checksum = 0;  ///< of all values that all ranks received; depends on --seed, --steps and the like only
  long long wrong = 0;         ///< wrong values on all ranks
};

/// Collective over MPI_COMM_WORLD.
Outcome run(Job& job);

}  // namespace fault_lab
