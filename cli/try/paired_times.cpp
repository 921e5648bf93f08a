// SPDX-License-Identifier: Apache-2.0
#include "cli/try/paired_times.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace bestride::inline cli {
namespace {

/// The value below which `part` of the sorted values lie, by linear interpolation.
double quantile(const std::vector<double>& sorted, double part) {
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

PairedComparison compare(const std::vector<PairedTimes>& rounds) {
  PairedComparison result;
  if (rounds.empty()) return result;
  std::vector<double> ratios, logs;
  for (const auto& [first, second] : rounds) {
    ratios.push_back(first / second);
    logs.push_back(std::log(first / second));
  }
  std::sort(ratios.begin(), ratios.end());
  result.ratio = quantile(ratios, 0.5);
  result.quartiles[0] = quantile(ratios, 0.25);
  result.quartiles[1] = quantile(ratios, 0.75);
  double seen = 0;
  for (const double value : logs) seen += value;
  const std::uint32_t flips = std::uint32_t{1} << logs.size();
  std::uint32_t as_far = 0;
  for (std::uint32_t flip = 0; flip < flips; ++flip) {
    double sum = 0;
    for (std::size_t i = 0; i < logs.size(); ++i) sum += flip >> i & 1 ? -logs[i] : logs[i];
    // The same sum in another order of signs may differ in its last bits.
    as_far += std::fabs(sum) >= std::fabs(seen) * (1 - 1e-9);
  }
  result.p = static_cast<double>(as_far) / flips;
  return result;
}

}  // namespace bestride::inline cli
