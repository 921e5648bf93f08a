// SPDX-License-Identifier: Apache-2.0
#pragma once
// Computation of a known length. It is an amount of work and not a time, so it takes longer on a core that is slowed
// down or shared.
#include <cstdint>

namespace fault_lab {

class Computation {
 public:
  /// Collective over MPI_COMM_WORLD: measures the speed, about 20 ms. All ranks use that of the fastest one.
  void calibrate();
  /// Work that takes `seconds` on an idle core.
  void run(double seconds);

 private:
  double turns_per_second_ = 0;
  volatile std::uint64_t result_ = 1;
};

}  // namespace fault_lab
