// SPDX-License-Identifier: Apache-2.0
#pragma once
// SlowCommunication: links, hosts and ranks whose messages take longer than those of others.
//
// Compares delays in windows of some seconds; a path that is slow in two successive windows is reported until it is not
// slow in two. First hosts are compared by the messages between them, then ranks by the messages within their hosts: a
// host's network and its memory have different delays. Slow is 1.5 times the typical delay; if there is no such host or
// link between hosts, 1.1 times for six windows. What is known only from calls that complete several messages needs
// four windows, and no smaller difference counts. Ranks within a host are not compared as closely, because cores at
// different distances differ as much. On a host whose ranks have to wait for a processor, the scheduler may cause a
// delay, so delays below 50 ms are treated as equal.
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "telemetry/detector/delay_matrix.hpp"
#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

struct SlowPathFinding {
  SlowPath path;
  std::vector<std::int32_t> ranks;  ///< at its ends, ascending
  double since = 0;                 ///< seconds of the observations' clock
  double confidence = 0;
};

/// Not thread-safe.
class SlowCommunication {
 public:
  /// `interrupted`: the job has another fault, so this time does not count. Returns what is slow now.
  std::vector<SlowPathFinding> observe(double seconds, std::span<const RankSnapshot> ranks, bool interrupted);

 private:
  struct Known {
    SlowNodePath path;
    bool hosts = false;
    double since = 0;
    int windows = 0;     ///< in which it was slow
    int clear = 0;       ///< in which it was slow by `clear_factor`
    double factors = 0;  ///< sum over the windows
    int missed = 0;      ///< successive windows since
  };
  void begin_window(double seconds, std::span<const RankSnapshot> ranks);
  /// False: the window has too few messages.
  bool end_window(double seconds, std::span<const RankSnapshot> ranks, bool last);
  void note(const std::vector<SlowNodePath>& paths, bool hosts);
  static bool is_confirmed(const Known& known);
  SlowPathFinding describe(const Known& known, std::span<const RankSnapshot> ranks) const;

  /// The rank had to wait for a processor in this window of `seconds`, or that is not known.
  bool was_queued(const RankSnapshot& rank, double seconds) const;

  bool open_ = false;
  double begin_ = 0, next_ = 0;
  std::map<std::int32_t, std::uint64_t> begin_ticks_;  ///< by rank: when it was read
  std::map<std::int32_t, double> begin_queued_;        ///< by rank: ProcessUse::queued_seconds
  std::vector<std::string> hosts_;                     ///< by node
  std::vector<Known> known_;
};

}  // namespace bestride::inline telemetry
