// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/slow_ranks.hpp"

#include <algorithm>
#include <cmath>

#include "base/median.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr double window = 2;              ///< seconds
constexpr std::size_t baseline = 4;       ///< windows before a change can be seen
constexpr std::size_t most_windows = 60;  ///< that are remembered
constexpr double least_change = 0.035;
constexpr double deviations = 6;  ///< median absolute deviations that a change exceeds
// A change of the mean of `recent_windows`. Measured on a job of 2 ranks with 3 ms between its calls: the standard
// deviation of a window is 1.2 %, so a change of 5 % was hidden in most windows.
constexpr std::size_t recent_windows = 8;
constexpr double least_drift = 0.03, drift_deviations = 4;
constexpr double gaussian = 1.48;          ///< standard deviation / median absolute deviation of a normal distribution
constexpr double least_share = 0.02;       ///< of time outside MPI, for which a quotient makes sense
constexpr double same_proportions = 0.95;  ///< cosine of the angle between two vectors of calls

constexpr double most_queued = 0.1;  ///< of a window, in which a rank waits for a processor

/// Windows in a row that have to be slow.
double confirming(double factor) { return factor > 1.1 ? 2 : 3; }

double deviation(const std::vector<double>& values, double center) {
  std::vector<double> distances;
  distances.reserve(values.size());
  for (const double value : values) distances.push_back(std::abs(value - center));
  return median_of(std::move(distances));
}

double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double product = 0, a2 = 0, b2 = 0;
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const double x = i < a.size() ? a[i] : 0, y = i < b.size() ? b[i] : 0;
    product += x * y, a2 += x * x, b2 += y * y;
  }
  return a2 > 0 && b2 > 0 ? product / std::sqrt(a2 * b2) : 0;
}

/// The median of all but one, which is `left_out`; at least two.
double median_without(const std::vector<double>& sorted, double left_out) {
  const auto at = static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), left_out) - sorted.begin());
  const auto other = [&](std::size_t i) { return sorted[i < at ? i : i + 1]; };
  const std::size_t count = sorted.size() - 1, middle = count / 2;
  return count % 2 == 1 ? other(middle) : (other(middle - 1) + other(middle)) / 2;
}

/// Seconds in the timed calls only; the caller scales them to all calls.
double mpi_seconds(const RankSnapshot& rank) {
  std::uint64_t ticks = 0;
  for (const SiteSnapshot& site : rank.sites) ticks += site.ticks;
  return static_cast<double>(ticks) / rank.ticks_per_second;
}

bool counts(const RankSnapshot& rank) {
  return rank.alive && rank.world_rank >= 0 && rank.state == ProcessState::initialized;
}

}  // namespace

void SlowRanks::begin_window(double seconds, std::span<const RankSnapshot> ranks) {
  begin_.clear();
  begin_seconds_ = seconds;
  open_ = true;
  for (const RankSnapshot& rank : ranks) {
    if (!counts(rank)) continue;
    Totals& totals = begin_[rank.world_rank];
    totals.mpi_seconds = mpi_seconds(rank);
    totals.queued_seconds = rank.use.queued_seconds;
    for (const SiteSnapshot& site : rank.sites) totals.calls.push_back(site.calls);
  }
}

void SlowRanks::begin_phase() {
  quotients_.clear();
  slow_ = 0;
  begins_.clear();
  phase_calls_.clear();
}

bool SlowRanks::same_phase(const std::vector<double>& calls) {
  if (phase_calls_.empty() || cosine(phase_calls_, calls) < same_proportions) {
    begin_phase();
    phase_calls_ = calls;
    return false;
  }
  return true;
}

bool SlowRanks::has_drifted(const Quotients& known, double* factor) {
  if (known.past.size() < recent_windows || known.recent.size() < recent_windows) return false;
  const double center = median_of(known.past), spread = gaussian * deviation(known.past, center);
  double mean = 0;
  for (const Window& each : known.recent) mean += each.quotient / recent_windows;
  *factor = mean / center;
  return mean > center * (1 + least_drift) + drift_deviations * spread / std::sqrt(recent_windows);
}

void SlowRanks::judge(std::int32_t rank, double quotient, bool queued, double begin) {
  Quotients& known = quotients_[rank];
  const std::size_t others = slow_ - (known.slow_since > 0 ? 1 : 0);
  judge(known, quotient, queued, others > 0, begin);
  slow_ = others + (known.slow_since > 0 ? 1 : 0);
}

void SlowRanks::judge(Quotients& known, double quotient, bool queued, bool compared_with_slow, double begin) {
  // The windows in which it was not slow are the baseline, also while the rank is slow.
  std::vector<double> before = known.past;
  for (const Window& each : known.recent)
    if (!each.slow) before.push_back(each.quotient);
  bool slow = false;
  if (before.size() >= baseline) {
    const double center = median_of(before), spread = deviation(before, center);
    slow = quotient > center * (1 + least_change) + deviations * spread;
    if (slow && known.slow_since == 0) known.slow_since = begin;
    if (slow) known.factor = quotient / center;
  }
  // Compared with a slow rank, the others are faster than they were.
  if (!slow && (queued || (compared_with_slow && known.slow_since == 0))) {
    known.slow_since = 0;
    return;
  }
  known.recent.push_back({begin, quotient, slow});
  double factor = 1;
  if (known.recent.size() > recent_windows) {
    const Window oldest = known.recent.front();
    known.recent.pop_front();
    if (!oldest.slow && !has_drifted(known, &factor)) known.past.push_back(oldest.quotient);
    if (known.past.size() > most_windows) known.past.erase(known.past.begin());
  }
  if (slow) return;
  if (has_drifted(known, &factor)) {
    if (known.slow_since == 0) known.slow_since = known.recent.front().begin;
    known.factor = factor;
  } else {
    known.slow_since = 0;
  }
}

void SlowRanks::end_window(double seconds, std::span<const RankSnapshot> ranks) {
  const double length = seconds - begin_seconds_;
  std::map<std::int32_t, double> shares;  // of time outside MPI
  std::map<std::int32_t, bool> queued;
  std::vector<double> calls;
  for (const RankSnapshot& rank : ranks) {
    const auto before = begin_.find(rank.world_rank);
    if (!counts(rank) || before == begin_.end()) continue;
    const double inside = (mpi_seconds(rank) - before->second.mpi_seconds) * rank.sampling / length;
    shares[rank.world_rank] = std::clamp(1 - inside, 0.0, 1.0);
    queued[rank.world_rank] = rank.use.queued_seconds - before->second.queued_seconds > most_queued * length;
    for (std::size_t i = 0; i < rank.sites.size(); ++i) {
      if (calls.size() <= i) calls.resize(i + 1);
      const std::uint64_t past = i < before->second.calls.size() ? before->second.calls[i] : 0;
      calls[i] += static_cast<double>(rank.sites[i].calls - std::min(past, rank.sites[i].calls));
    }
  }
  open_ = false;
  if (shares.size() < 2 || !same_phase(calls)) return;
  std::vector<double> sorted;
  sorted.reserve(shares.size());
  for (const auto& [rank, share] : shares) sorted.push_back(share);
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [rank, share] : shares)
    if (const double middle = median_without(sorted, share); middle >= least_share)
      judge(rank, share / middle, queued[rank], begin_seconds_);
}

std::vector<SlowRank> SlowRanks::observe(double seconds, std::span<const RankSnapshot> ranks, bool paused) {
  if (paused)
    open_ = false;
  else if (!open_)
    begin_window(seconds, ranks);
  else if (seconds - begin_seconds_ >= window)
    end_window(seconds, ranks), begin_window(seconds, ranks);
  std::vector<SlowRank> result;
  for (const auto& [rank, known] : quotients_)
    if (known.slow_since > 0 && seconds - known.slow_since >= confirming(known.factor) * window)
      result.push_back({rank, known.factor, known.slow_since, known.factor > 1.1 ? 0.9 : 0.7});
  // With two ranks, the quotient of one is the inverse of the other's: only the slower one rises.
  return result;
}

}  // namespace bestride::inline telemetry
