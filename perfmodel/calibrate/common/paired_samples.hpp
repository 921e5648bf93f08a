// SPDX-License-Identifier: Apache-2.0
#pragma once
// VariantTimes: the result of alternating samples of two variants of one collective. Does not use MPI.
#include <vector>

namespace bestride::inline perfmodel {

struct VariantTimes {
  double mpi = 0;    ///< seconds, by its MPI_ name, which a preload library may intercept
  double pmpi = 0;   ///< seconds, by the library's own PMPI_ name (base/profiling_names.hpp)
  double noise = 0;  ///< relative error of mpi / pmpi: about one and a half to two standard errors
};

/// Needs the same number of samples of each, at least one. A disturbance that lasts longer than a turn affects both
/// variants, so they are compared turn by turn. Their ratio is the median of the ratios of all turns. noise: the width
/// of the middle seven eighths of the ratios, divided by their median and by the square root of their number; 1 for a
/// single turn. May throw std::bad_alloc.
VariantTimes compare_variants(const std::vector<double>& mpi, const std::vector<double>& pmpi);

}  // namespace bestride::inline perfmodel
