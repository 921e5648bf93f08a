// SPDX-License-Identifier: Apache-2.0
#pragma once
// The partitioned training step of one rank: what it stores, gathers, computes and sends.
#include <array>
#include <cstdint>
#include <vector>

#include "compute.hpp"
#include "model.hpp"

namespace zero_step {

enum Phase { forward_gather, backward_gather, reduce_scatter, optimizer, compute, others, phase_count };
const char* name_of(Phase);

/// Of this rank, over all steps. In the nonblocking and persistent forms the time of a phase is the time spent in
/// starting and waiting, not the duration of the operation.
struct PhaseTotal {
  double seconds = 0;
  long long calls = 0;
  long long bytes = 0;  ///< of other ranks' data that this rank must receive (for a sum: one word each)
};

/// The result of one rank. Shares are in the order of the units.
struct Outcome {
  std::vector<AdamState> shares;
  std::vector<double>
      activations;  ///< all activations of this rank, ordered by step, micro-batch, forward then backward, unit
  std::array<PhaseTotal, phase_count> phases;
  std::vector<double> step_s;
};

/// Collective over MPI_COMM_WORLD.
Outcome train(const Options& options, const std::vector<Unit>& units);

}  // namespace zero_step
