// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures one point of the plan.
#include <mpi.h>

#include <vector>

#include "perfmodel/calibrate/common/sample_plan.hpp"
#include "perfmodel/calibrate/messages/pair.hpp"

namespace bestride::inline perfmodel {

class PointMeasurer {
 public:
  /// `pair`: two ranks. `limit`: maximum duration of a batch of samples of one series, in seconds.
  PointMeasurer(MPI_Comm pair, double limit) : pair_(pair), limit_(limit) {}
  /// Seconds, valid on rank 0, in the order of series_at(point); for a contiguous point, in the order of
  /// ContiguousForm. 0 if every sample was disturbed. Throws if a type can't be decoded.
  std::vector<double> measure(const Point& point);

 private:
  std::vector<double> measure_contiguous(const Point& point);
  std::vector<double> measure_exchange(const Point& point);

  MPI_Comm pair_;
  double limit_;
  Arena user_, packed_, other_, other_packed_;
};

}  // namespace bestride::inline perfmodel
