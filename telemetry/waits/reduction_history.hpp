// SPDX-License-Identifier: Apache-2.0
#pragma once
// Members of a communicator whose reductions have differed at some time, though nothing hangs.
//
// A record remembers the last calls of a rank only, and a program may make more of them between two observations. The
// hash of all reductions of a communicator (CommunicatorSnapshot::reductions) tells afterwards that one of them
// differed, but not which.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "telemetry/waits/mismatch.hpp"

namespace bestride::inline telemetry {

/// Not thread-safe.
class ReductionHistory {
 public:
  /// Compares the hashes of members that have begun the same number of collective calls. Returns mismatches whose
  /// variants have ranks only, one for each communicator. Each was also present at the previous observation, so that
  /// the comparison of the calls themselves had time to find it; and most members, or all, were compared.
  std::vector<CollectiveMismatch> observe(const Members& members);

 private:
  struct State {
    std::uint32_t calls = 0, hash = 0;  ///< of CommunicatorSnapshot
  };
  struct Communicator {
    std::int32_t size = 0;
    std::string name;
    std::uint32_t agreed = 0;  ///< the last number of calls after which all members had the same hash
    bool differed = false, reported = false;
  };
  using States = std::map<std::uint64_t, std::map<std::int32_t, State>>;  ///< by uid and rank
  /// The states of the communicators in which members differ after the same number of calls.
  States differing(const Members& members);

  std::map<std::uint64_t, Communicator> communicators_;  ///< by uid
};

}  // namespace bestride::inline telemetry
