// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/paired_samples.hpp"

#include <algorithm>
#include <cmath>

#include "base/median.hpp"

namespace bestride::inline perfmodel {

VariantTimes compare_variants(const std::vector<double>& mpi, const std::vector<double>& pmpi) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < mpi.size(); ++i) ratios.push_back(mpi[i] / pmpi[i]);
  std::sort(ratios.begin(), ratios.end());
  const double ratio = median_of(ratios), seconds = median_of(pmpi);
  const std::size_t outside = ratios.size() / 8;
  const double width = ratios[ratios.size() - 1 - outside] - ratios[outside];
  const double noise = ratios.size() < 2 ? 1 : width / ratio / std::sqrt(static_cast<double>(ratios.size()));
  return {ratio * seconds, seconds, noise};
}

}  // namespace bestride::inline perfmodel
