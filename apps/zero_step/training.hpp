// SPDX-License-Identifier: Apache-2.0
#pragma once
// The partitioned training step: what one rank keeps, gathers, computes and gives away.
#include <array>
#include <cstdint>
#include <vector>

#include "compute.hpp"
#include "model.hpp"

namespace zero_step {

enum Phase { forward_gather, backward_gather, reduce_scatter, optimizer, compute, others, phase_count };
const char* name_of(Phase);

/// Of this rank, over all steps. In the forms that run ahead a phase's time is what starting and waiting took, not how long it ran.
struct PhaseTotal {
  double seconds = 0;
  long long calls = 0;
  long long bytes = 0;  ///< of other ranks' data that this rank has to receive (of a sum: one word each)
};

/// What one rank has at the end. Shares are in the order of the units.
struct Outcome {
  std::vector<AdamState> shares;
  std::vector<double> activations;  ///< every one of this rank: by step, micro-batch, forward then backward, unit
  std::array<PhaseTotal, phase_count> phases;
  std::vector<double> step_s;
};

/// Collective over MPI_COMM_WORLD.
Outcome train(const Options& options, const std::vector<Unit>& units);

}  // namespace zero_step
