// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results as text and as JSON.
#include <string>

#include "reference.hpp"

namespace zero_step {

/// The results of the job: times of the slowest rank, bytes of the busiest rank, checks summed over all ranks.
struct Summary {
  int ranks = 0;
  std::size_t parameters = 0;
  std::size_t units = 0;
  std::array<PhaseTotal, phase_count> phases;
  std::vector<double> step_s;
  Comparison comparison;
};

/// Collective over MPI_COMM_WORLD.
Summary summarize(const std::vector<Unit>& units, const Outcome& outcome, const Comparison& comparison);

std::string as_text(const Options& options, const Summary& summary);
std::string as_json(const Options& options, const Summary& summary);

}  // namespace zero_step
