// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures one point of the plan.
#include <mpi.h>

#include <vector>

#include "perfmodel/measure/pair.hpp"
#include "perfmodel/measure/plan.hpp"

namespace bestride {

class PointMeasurer {
 public:
  /// `pair`: two ranks. `limit`: seconds a batch of samples of one series may take.
  PointMeasurer(MPI_Comm pair, double limit) : pair_(pair), limit_(limit) {}
  /// Seconds, valid on rank 0: parallel to series_at(point); of a contiguous point parallel to Wire. 0 where no sample was
  /// undisturbed. Throws if a type can't be decoded.
  std::vector<double> measure(const Point& point);

 private:
  std::vector<double> measure_contiguous(const Point& point);
  std::vector<double> measure_exchange(const Point& point);

  MPI_Comm pair_;
  double limit_;
  Arena user_, packed_, other_, other_packed_;
};

}  // namespace bestride
