// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether one of two variants that ran in turns is faster, beyond the noise.
#include <utility>
#include <vector>

namespace bestride::inline cli {

/// The times of one round, in seconds, both positive.
using PairedTimes = std::pair<double, double>;

struct PairedComparison {
  double ratio = 1;              ///< median over the rounds of first over second: above 1, the second is faster
  double quartiles[2] = {1, 1};  ///< of the same
  /// Probability of a mean log ratio at least this far from 0 if the two variants of each round were interchangeable:
  /// the exact two-sided sign-flip test (Fisher, The Design of Experiments, section 21). At least 2 / 2^rounds.
  double p = 1;
};

/// 1 to max_rounds rounds.
constexpr int max_rounds = 20;
PairedComparison compare(const std::vector<PairedTimes>& rounds);

/// The least number of rounds with which `compare` can return a p below 0.05.
constexpr int least_conclusive_rounds = 6;
constexpr double significant = 0.05;

}  // namespace bestride::inline cli
