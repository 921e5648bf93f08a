// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a point's series are timed: short samples, interleaved round by round, summed up by a low quantile of those in which
// neither rank was taken off its processor.
//
// The lower quartile of the rounds: noise on a shared machine only adds time, but the minimum of many rounds keeps the one lucky
// constellation of two ranks that a job won't see again. Quantiles alone lost: with more runnable processes than cores, nearly
// every round trip meets a waiting rank (16 ms instead of 16 us); the kernel's own count of preemptions tells those apart.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace bestride {

inline constexpr int most_rounds = 15;

struct SamplePlan {
  std::int32_t turns = 1;   ///< calls a sample
  std::int32_t rounds = 5;  ///< samples a batch
};

/// For a call of about `seconds`: samples of 20 us or more, a batch of at most `limit` seconds, but five rounds at least.
inline SamplePlan plan_samples(double seconds, double limit) {
  SamplePlan plan;
  plan.turns = static_cast<std::int32_t>(std::clamp(20e-6 / std::max(seconds, 1e-9), 1.0, 2000.0));
  plan.rounds = static_cast<std::int32_t>(std::clamp(limit / (std::max(seconds, 1e-9) * plan.turns), 5.0, double{most_rounds}));
  return plan;
}

/// Undisturbed samples a series needs.
inline constexpr std::size_t enough_samples = 4;
/// Batches after which a series is given up.
inline constexpr int most_batches = 8;

/// Empty: 0.
inline double lower_quartile(std::vector<double> samples) {
  if (samples.empty()) return 0;
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 4);
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

/// How often this thread was taken off its processor so far.
inline long preemptions() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace bestride
