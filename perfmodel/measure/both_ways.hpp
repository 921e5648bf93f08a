// SPDX-License-Identifier: Apache-2.0
#pragma once
// BothWays: what samples of one collective, measured in turns, say of its two ways, and of a third one where it is blocking. Knows no MPI.
#include <vector>

namespace bestride {

struct BothWays {
  double mpi = 0;    ///< seconds, by its MPI_ name, which a preloaded library may take
  double pmpi = 0;   ///< seconds, by its PMPI_ name, which it leaves alone
  double noise = 0;  ///< by what part mpi over the lesser of the others may be wrong: about one and a half to two standard errors
  double tested = 0;        ///< seconds of the library's nonblocking form in place of its blocking one; 0: not measured
  double tested_noise = 0;  ///< by what part tested / pmpi may be wrong
};

/// Of as many samples of either, at least one. What disturbs a machine longer than a turn takes disturbs all of it, so ways are compared turn by turn, with
/// the better of the library's forms, whose time is its median: a form that wavers does not make the comparison of the other two waver. A ratio is the
/// median of the turns' ratios. noise: the width of the middle seven eighths of them over the median and the root of their number; of one turn 1.
/// `tested`: none, or as many. May throw std::bad_alloc.
BothWays both_ways(const std::vector<double>& mpi, const std::vector<double>& pmpi, const std::vector<double>& tested = {});

}  // namespace bestride
