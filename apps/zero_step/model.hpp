// SPDX-License-Identifier: Apache-2.0
#pragma once
// The shape of a small transformer and the partition of its parameters: a unit (the embedding, one layer, the final
// norm) is gathered as a whole, and every rank owns an equal share of every unit, padded at its end (ZeRO stage 3:
// Rajbhandari et al., SC'20).
#include <cstddef>
#include <string>
#include <vector>

#include "options.hpp"

namespace zero_step {

enum class Kind { weight, bias, gain };  ///< determines the initial values

struct Tensor {
  std::string name;
  std::size_t elements;
  Kind kind;
};

/// The parameters that one call gathers.
struct Unit {
  std::string name;
  std::vector<Tensor> tensors;
  std::size_t elements = 0;  ///< parameters, without padding
  std::size_t share =
      0;  ///< elements that one rank owns, padding included; a gather returns `share` times the number of ranks
};

/// In the order of the forward pass. `ranks` >= 1.
std::vector<Unit> make_units(const Options& options, int ranks);

std::size_t parameters_of(const std::vector<Unit>& units);

/// A one-line error message if a share is too large for one MPI call with an int count, or an empty string.
std::string validate(const std::vector<Unit>& units);

}  // namespace zero_step
