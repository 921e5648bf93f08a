// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same training on one rank, without communication: the whole model and the data of every rank.
#include <string>

#include "training.hpp"

namespace zero_step {

struct Comparison {
  long long values = 0;       ///< values of the optimizer state that were compared
  long long activations = 0;  ///< activations compared; each is a digest of one gathered unit
  long long wrong = 0;
  std::string first_wrong;
};

/// Compares the result of `rank` of `ranks` with the expected one: bit by bit with --exact; otherwise within 1 % of the
/// learning rate per step (a float sum in another order changes an update by less than a thousandth of it) and 1e-4 for
/// activations. Needs memory for the whole model, 16 bytes per parameter.
Comparison compare_with_reference(const Options& options, const std::vector<Unit>& units, const Outcome& outcome,
                                  int rank, int ranks);

}  // namespace zero_step
