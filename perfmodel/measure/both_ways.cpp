// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/measure/both_ways.hpp"

#include <algorithm>
#include <cmath>

namespace bestride {
namespace {

double middle_of(const std::vector<double>& sorted) {
  const std::size_t half = sorted.size() / 2;
  return sorted.size() % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

}  // namespace

BothWays both_ways(const std::vector<double>& mpi, const std::vector<double>& pmpi, const std::vector<double>& tested) {
  std::vector<double> ratios, library(pmpi);
  for (std::size_t i = 0; i < mpi.size(); ++i) ratios.push_back(mpi[i] / pmpi[i]);
  std::sort(ratios.begin(), ratios.end());
  std::sort(library.begin(), library.end());
  const double ratio = middle_of(ratios), seconds = middle_of(library);
  const std::size_t outside = ratios.size() / 8;
  const double width = ratios[ratios.size() - 1 - outside] - ratios[outside];
  const double noise = ratios.size() < 2 ? 1 : width / ratio / std::sqrt(static_cast<double>(ratios.size()));
  if (tested.empty()) return {ratio * seconds, seconds, noise};
  const BothWays third = both_ways(tested, pmpi);
  return {ratio * seconds, seconds, noise, third.mpi, third.noise};
}

}  // namespace bestride
