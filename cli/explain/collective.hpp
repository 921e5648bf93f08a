// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride explain --collective NAME ...`: whether a collective would be hierarchical here, and why.
#include <array>
#include <string>
#include <string_view>

namespace bestride {

/// Collectives in addition to those of the model. No member knows all their sizes, so they are not chosen by size.
/// Without the `v`, they are the model's collectives.
inline constexpr std::array<std::string_view, 3> collectives_of_any_size{"gatherv", "scatterv", "alltoallv"};

struct CollectiveQuestion {
  std::string collective;    ///< as name(Collective) prints it, or one of collectives_of_any_size; empty: no question
                             ///< about a collective
  std::string bytes = "1M";  ///< CollectiveShape::bytes, with K, M, G
  int nodes = 2, ranks = 4;
  bool nonblocking = false;  ///< or persistent
  bool cyclic = false;       ///< rank r on node r modulo nodes; otherwise consecutive ranks on a node
};

/// Prints the answer; ends the command if the question is invalid.
void explain_collective(const CollectiveQuestion& question, bool json);

}  // namespace bestride
