// SPDX-License-Identifier: Apache-2.0
#pragma once
// VariantTimes: the result of alternating samples of one collective, for two variants, and for a third one if it is
// blocking. Does not use MPI.
#include <vector>

namespace bestride::inline perfmodel {

struct VariantTimes {
  double mpi = 0;   ///< seconds, by its MPI_ name, which a preload library may intercept
  double pmpi = 0;  ///< seconds, by the library's own PMPI_ name (base/profiling_names.hpp)
  double noise =
      0;  ///< relative error of mpi over the smaller of the others: about one and a half to two standard errors
  double tested = 0;        ///< seconds of the library's nonblocking form in place of its blocking one; 0: not measured
  double tested_noise = 0;  ///< relative error of tested / pmpi
};

/// Needs the same number of samples of each, at least one. A disturbance that lasts longer than a turn affects all
/// variants, so they are compared turn by turn. mpi is compared with the form of the library whose median time is
/// lower, so that a form with unstable times does not disturb the comparison of the other two. A ratio is the median of
/// the ratios of all turns. noise: the width of the middle seven eighths of the ratios, divided by their median and by
/// the square root of their number; 1 for a single turn. `tested`: empty, or the same number of samples. May throw
/// std::bad_alloc.
VariantTimes compare_variants(const std::vector<double>& mpi, const std::vector<double>& pmpi,
                              const std::vector<double>& tested = {});

}  // namespace bestride::inline perfmodel
