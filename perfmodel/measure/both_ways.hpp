// SPDX-License-Identifier: Apache-2.0
#pragma once
// BothWays: what samples of one collective, measured in turns, say of its two ways, and of a third one where it is blocking. Knows no MPI.
#include <vector>

namespace bestride {

struct BothWays {
  double mpi = 0;    ///< seconds, by its MPI_ name, which a preloaded library may take
  double pmpi = 0;   ///< seconds, by its PMPI_ name, which it leaves alone
  double noise = 0;  ///< by what part mpi / pmpi may be wrong: about one and a half to two standard errors
  double tested = 0;        ///< seconds of the library's nonblocking form in place of its blocking one; 0: not measured
  double tested_noise = 0;  ///< by what part tested / pmpi may be wrong
};

/// Of as many samples of either, at least one. What disturbs a machine longer than a pair takes disturbs both, so the ratio is the median of the
/// pairs' ratios. noise: the width of the middle seven eighths of them over the median and the root of their number; of one pair 1.
/// `tested`: none, or as many. May throw std::bad_alloc.
BothWays both_ways(const std::vector<double>& mpi, const std::vector<double>& pmpi, const std::vector<double>& tested = {});

}  // namespace bestride
