// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the series of a point are timed: short samples, interleaved round by round, summarized by a low quantile of those
// in which no rank was preempted.
//
// The quantile is the lower quartile of the rounds. Noise on a shared machine only adds time, but the minimum of many
// rounds can be a rare state of the two ranks that a job will not see again. Alternative considered: quantiles without
// the count of preemptions. If there are more runnable processes than cores, nearly every round trip meets a waiting
// rank (16 ms instead of 16 us); the kernel's count of preemptions identifies these samples.
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace bestride::inline perfmodel {

inline constexpr int max_rounds = 15;

struct SamplePlan {
  std::int32_t turns = 1;   ///< calls in a sample
  std::int32_t rounds = 5;  ///< samples in a batch
};

/// The plan for a call that takes about `seconds` seconds: samples of at least 20 us; batches of at most `limit`
/// seconds, but at least five rounds.
inline SamplePlan plan_samples(double seconds, double limit) {
  SamplePlan plan;
  plan.turns = static_cast<std::int32_t>(std::clamp(20e-6 / std::max(seconds, 1e-9), 1.0, 2000.0));
  plan.rounds =
      static_cast<std::int32_t>(std::clamp(limit / (std::max(seconds, 1e-9) * plan.turns), 5.0, double{max_rounds}));
  return plan;
}

/// The number of undisturbed samples that a series needs.
inline constexpr std::size_t enough_samples = 4;
/// The number of batches after which a series is given up.
inline constexpr int max_batches = 8;

/// 0 if there are no samples.
inline double lower_quartile(std::vector<double> samples) {
  if (samples.empty()) return 0;
  const auto at = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 4);
  std::nth_element(samples.begin(), at, samples.end());
  return *at;
}

/// How often this thread has been preempted so far.
inline long preemptions() noexcept {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace bestride::inline perfmodel
