// SPDX-License-Identifier: Apache-2.0
#pragma once
// What calibration measures of collectives between hosts, and in which order: the links, then the variants of each
// collective, coarse points first. Does not use MPI.
#include <string>
#include <vector>

#include "perfmodel/collective/measurements.hpp"

namespace bestride::inline perfmodel {

struct CollectivePoint {
  Collective what = Collective::allgather;
  bool blocking = true;
  int size = 0;  ///< index for collective_bytes_at()
  /// One word: "allgather.blocking.3".
  std::string id() const;
  bool operator==(const CollectivePoint&) const = default;
};

/// Middle sizes first, then the smallest and largest, beyond which corrections are extrapolated. The largest size comes
/// last, because it takes as long as all others together. allgatherv is omitted, because its prediction is that of
/// allgather. `quick`: the first four sizes.
std::vector<CollectivePoint> make_collective_plan(bool quick);

}  // namespace bestride::inline perfmodel
