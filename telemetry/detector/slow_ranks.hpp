// SPDX-License-Identifier: Apache-2.0
#pragma once
// SlowRanks: ranks that have become slower than the others.
//
// The share of time that a rank spends outside MPI, divided by the median share of the other ranks, says how much
// longer it computes than they do; a rank that gets slower makes the others wait, so its quotient rises whatever the
// pattern of communication. It needs no clock common to the ranks and no matching of calls.
//
// Only a change is a finding: a rank that always had more work is no fault. The comparison is made within one phase of
// the program, that is as long as the ranks make their calls at the same places in the same proportions, and without
// the times in which a rank pauses. A large change shows in two windows of 2 s; one of a few percent, which a window's
// noise may hide, in the mean of eight. If ranks had to wait for a processor before, the scheduler slows different
// ranks at different times, so there is no baseline.
//
// Alternative considered: which rank comes last to each collective call (C4, for jobs in which
// every rank has the same work), which blames the rank with most work in every job that is not balanced.
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

struct SlowRank {
  std::int32_t rank = -1;
  double factor = 1;      ///< how much longer than before it computes, compared with the others; above 1
  double since = 0;       ///< when it began, seconds of the observations' clock
  double confidence = 0;  ///< 0 to 1
};

/// Not thread-safe.
class SlowRanks {
 public:
  /// `ranks`: of a job. `paused`: a rank has made no call for so long that this time does not count. Returns the ranks
  /// that are slow now, by rank.
  std::vector<SlowRank> observe(double seconds, std::span<const RankSnapshot> ranks, bool paused);

 private:
  struct Totals {
    double mpi_seconds = 0;
    double queued_seconds = 0;         ///< ProcessUse; -1: not known
    std::vector<std::uint64_t> calls;  ///< by site
  };
  struct Window {
    double begin, quotient;
    bool slow;  ///< in this window alone
  };
  struct Quotients {
    std::vector<double> past;   ///< of the windows of this phase in which the rank was not slow
    std::deque<Window> recent;  ///< the last ones, not in `past` yet
    double slow_since = 0;      ///< 0: not slow
    double factor = 1;
  };
  void begin_window(double seconds, std::span<const RankSnapshot> ranks);
  void end_window(double seconds, std::span<const RankSnapshot> ranks);
  void begin_phase();
  bool same_phase(const std::vector<double>& calls);
  /// `queued`: the rank had to wait for a processor.
  void judge(std::int32_t rank, double quotient, bool queued, double begin);
  /// `compared_with_slow`: another rank is slow.
  static void judge(Quotients& known, double quotient, bool queued, bool compared_with_slow, double begin);
  /// The mean of the recent windows is above what the windows before them explain.
  static bool has_drifted(const Quotients& known, double* factor);

  std::map<std::int32_t, Totals> begin_;
  double begin_seconds_ = 0;
  bool open_ = false;
  std::map<std::int32_t, Quotients> quotients_;
  std::size_t slow_ = 0;             ///< of them, how many are slow
  std::vector<double> phase_calls_;  ///< share of each site in the calls of the phase
  std::vector<double> begins_;       ///< of the windows of the phase
};

}  // namespace bestride::inline telemetry
