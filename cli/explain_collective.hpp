// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride explain --collective NAME ...`: whether a collective would go through the hierarchy here, and why.
#include <string>

namespace bestride {

struct CollectiveQuestion {
  std::string collective;      ///< as name(Collective) has it; empty: none is asked about
  std::string bytes = "1M";    ///< CollectiveShape::bytes, with K, M, G
  int nodes = 2, ranks = 4;
  bool nonblocking = false;    ///< or persistent
  bool cyclic = false;         ///< rank r on node r modulo nodes; else consecutive ranks on a node
};

/// Prints; ends the command where the question makes no sense.
void explain_collective(const CollectiveQuestion& question, bool json);

}  // namespace bestride
