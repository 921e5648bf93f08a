// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/paired_samples.hpp"

#include <algorithm>
#include <cmath>

#include "base/median.hpp"

namespace bestride::inline perfmodel {
namespace {

struct Ratio {
  double value = 0, noise = 0;
};

/// The ratio of alternating samples.
Ratio ratio_of(const std::vector<double>& samples, const std::vector<double>& reference) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < samples.size(); ++i) ratios.push_back(samples[i] / reference[i]);
  std::sort(ratios.begin(), ratios.end());
  const double ratio = median_of(ratios);
  const std::size_t outside = ratios.size() / 8;
  const double width = ratios[ratios.size() - 1 - outside] - ratios[outside];
  return {ratio, ratios.size() < 2 ? 1 : width / ratio / std::sqrt(static_cast<double>(ratios.size()))};
}

}  // namespace

VariantTimes compare_variants(const std::vector<double>& mpi, const std::vector<double>& pmpi,
                              const std::vector<double>& tested) {
  const bool tested_is_better = !tested.empty() && median_of(tested) < median_of(pmpi);
  const std::vector<double>& better = tested_is_better ? tested : pmpi;
  const double seconds = median_of(better);
  const Ratio ours = ratio_of(mpi, better);
  VariantTimes times{ours.value * seconds, seconds, ours.noise};
  if (tested.empty()) return times;
  const Ratio other = ratio_of(tested_is_better ? pmpi : tested, better);
  (tested_is_better ? times.pmpi : times.tested) = other.value * seconds;
  (tested_is_better ? times.tested : times.pmpi) = seconds;
  times.tested_noise = other.noise;
  return times;
}

}  // namespace bestride::inline perfmodel
