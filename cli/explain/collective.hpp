// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride explain --collective NAME ...`: whether a collective would be hierarchical here, and why.
#include <string>

namespace bestride::inline cli {

struct CollectiveQuestion {
  std::string collective;    ///< as name(Collective) prints it; empty: no question about a collective
  std::string bytes = "1M";  ///< CollectiveShape::bytes, with K, M, G
  int nodes = 2, ranks = 4;
  bool nonblocking = false;  ///< or persistent
  double mbit = 0;           ///< Mbit/s over a node's link, in place of the built-in link; 0: not given
  bool cyclic = false;       ///< rank r on node r modulo nodes; otherwise consecutive ranks on a node
};

/// Prints the answer; ends the command if the question is invalid.
void explain_collective(const CollectiveQuestion& question, bool json);

}  // namespace bestride::inline cli
