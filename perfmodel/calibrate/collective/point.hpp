// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures the variants of one collective: by its MPI_ name, which a preload library may intercept, and by the
// library's own PMPI_ name.
#include <memory>

#include "perfmodel/calibrate/collective/plan.hpp"
#include "perfmodel/calibrate/common/paired_samples.hpp"

namespace bestride::inline perfmodel {

class CollectiveMeasurer {
 public:
  CollectiveMeasurer();
  ~CollectiveMeasurer();
  CollectiveMeasurer(const CollectiveMeasurer&) = delete;
  /// Times of the slowest rank. Collective over MPI_COMM_WORLD; all ranks get the same result. `limit`: approximate
  /// duration in seconds; up to four times as long if the ratio of the variants is not stable by then; at least
  /// three rounds. The link is idle for 20 ms before each call: a traffic shaper or a queue lets single short calls
  /// through at once; without the pause each variant is delayed by the one before it, and both seem equally fast.
  /// Throws std::bad_alloc.
  VariantTimes measure(const CollectivePoint& point, double limit);

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace bestride::inline perfmodel
