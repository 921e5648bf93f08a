// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride explain --collective NAME ...`: whether a collective would go through the hierarchy here, and why.
#include <array>
#include <string>
#include <string_view>

namespace bestride {

/// Collectives beside those of the model: no member knows all their sizes, so they are not chosen by size. Without the `v`, the model's.
inline constexpr std::array<std::string_view, 3> collectives_of_any_size{"gatherv", "scatterv", "alltoallv"};

struct CollectiveQuestion {
  std::string collective;      ///< as name(Collective) has it, or of any size; empty: none is asked about
  std::string bytes = "1M";    ///< CollectiveShape::bytes, with K, M, G
  int nodes = 2, ranks = 4;
  bool nonblocking = false;    ///< or persistent
  bool cyclic = false;         ///< rank r on node r modulo nodes; else consecutive ranks on a node
};

/// Prints; ends the command where the question makes no sense.
void explain_collective(const CollectiveQuestion& question, bool json);

}  // namespace bestride
