// SPDX-License-Identifier: Apache-2.0
#pragma once
// What calibration measures of collectives between hosts and in which order: the links, then both ways of each collective, coarse first.
// Knows no MPI.
#include <string>
#include <vector>

#include "perfmodel/collective_measurements.hpp"

namespace bestride {

struct CollectivePoint {
  Collective what = Collective::allgather;
  bool blocking = true;
  int size = 0;  ///< of collective_bytes_at()
  /// One word: "allgather.blocking.3".
  std::string id() const;
  bool operator==(const CollectivePoint&) const = default;
};

/// Middle sizes first, then the ends, beyond which corrections are extended; the longest, which takes as long as all others together, last. Without
/// allgatherv, which is predicted like allgather. `quick`: the first four sizes.
std::vector<CollectivePoint> make_collective_plan(bool quick);

}  // namespace bestride
