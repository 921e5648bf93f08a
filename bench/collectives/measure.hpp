// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures one case: the variants take turns, round by round, on the same content.
#include <string>
#include <vector>

#include "calls.hpp"

namespace collectives {

struct Measurement {
  std::vector<double> seconds[3];  ///< by variant and round: time of the slowest rank, with --only of this rank
  /// Over all ranks and rounds, in bytes, or in sums that are compared within a tolerance:
  long long compared = 0;
  long long wrong = 0;  ///< ours differs from both of the library's results; counted against the closer one
  long long disputed =
      0;  ///< the library's two results differ: MPICH 4.0's MPI_Reduce of long vectors, root alone on its node
};

/// Collective over MPI_COMM_WORLD.
Measurement measure(const Options& options, const Operation& operation, Form form);

}  // namespace collectives
