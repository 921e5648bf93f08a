// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same training by one rank alone, with no communication: the whole model, every rank's data.
#include <string>

#include "training.hpp"

namespace zero_step {

struct Comparison {
  long long values = 0;       ///< of the optimizer's state that were compared
  long long activations = 0;  ///< each a digest of one gathered unit
  long long wrong = 0;
  std::string first_wrong;
};

/// Compares what `rank` of `ranks` has with what it must have: bit by bit with --exact, else within 1 % of the learning rate a step
/// (a float sum in another order moves an update by less than a thousandth of it) and 1e-4 for activations.
/// Needs memory for the whole model, 16 bytes a parameter.
Comparison compare_with_reference(const Options& options, const std::vector<Unit>& units, const Outcome& outcome, int rank,
                                  int ranks);

}  // namespace zero_step
