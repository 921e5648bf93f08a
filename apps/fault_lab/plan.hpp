// SPDX-License-Identifier: Apache-2.0
#pragma once
// What follows from the seed alone, the same on every rank: where the fault happens, the data of all messages, the
// imbalance. Thread-safe.
#include <cstdint>
#include <vector>

#include "options.hpp"

namespace fault_lab {

struct Plan {
  Kind kind = Kind::none;
  int rank = 0, step = 0;
  Phase phase = Phase::halo;
  std::uint64_t variant = 0;  ///< a random number: which of several calls is the wrong one
};

/// The first, or the only fault. `options` must be valid for `ranks`. The step is in the middle half of the run unless
/// --fault-step is given.
Plan make_plan(const Options& options, int ranks);

/// Of --second-fault: in the same step and phase as `first`, on another rank.
Plan make_second_plan(const Options& options, const Plan& first, int ranks);

/// The ranks that a detector should name, ascending.
std::vector<int> culprits_of(const Plan& plan, int ranks);

/// A hash of all arguments in which every bit depends on all of them (the finalizer of SplitMix64).
std::uint64_t mix(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0, std::uint64_t d = 0);

/// Uniform from -1 to 1, by seed, rank, step and phase.
double deviation(const Options& options, int rank, int step, Phase phase);

}  // namespace fault_lab
