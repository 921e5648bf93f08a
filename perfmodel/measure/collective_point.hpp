// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures one collective both ways: by its MPI_ name, which a preloaded library may take, and by its PMPI_ name, which it leaves alone.
#include <memory>

#include "perfmodel/measure/collective_plan.hpp"

namespace bestride {

struct BothWays {
  double mpi = 0;   ///< seconds of the slowest rank, lower quartile of the rounds
  double pmpi = 0;
};

class CollectiveMeasurer {
 public:
  CollectiveMeasurer();
  ~CollectiveMeasurer();
  CollectiveMeasurer(const CollectiveMeasurer&) = delete;
  /// Collective over MPI_COMM_WORLD, the same on all ranks. `limit`: seconds, roughly; three rounds at least. Throws std::bad_alloc.
  BothWays measure(const CollectivePoint& point, double limit);

 private:
  struct Buffers;
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace bestride
