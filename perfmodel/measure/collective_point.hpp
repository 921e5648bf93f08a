// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures one collective both ways: by its MPI_ name, which a preloaded library may take, and by its PMPI_ name, which it leaves alone; a blocking one
// also in the library's nonblocking form, tested until it ends.
#include <memory>

#include "perfmodel/measure/both_ways.hpp"
#include "perfmodel/measure/collective_plan.hpp"

namespace bestride {

class CollectiveMeasurer {
 public:
  CollectiveMeasurer();
  ~CollectiveMeasurer();
  CollectiveMeasurer(const CollectiveMeasurer&) = delete;
  /// Of the slowest rank. Collective over MPI_COMM_WORLD, the same on all ranks. `limit`: seconds, roughly, and four times that where the ways' ratios
  /// are not steady by then; three rounds at least. Before each call the link rests for 20 ms: what
  /// shapes a link or queues for it lets short calls through at once that come one by one, and makes all ways look alike where each pays for the one
  /// before. Throws std::bad_alloc.
  BothWays measure(const CollectivePoint& point, double limit);

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace bestride
