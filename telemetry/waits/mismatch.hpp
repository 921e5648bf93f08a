// SPDX-License-Identifier: Apache-2.0
#pragma once
// Members of a communicator that make different collective calls where MPI asks for the same one.
#include <map>
#include <tuple>
#include <vector>

#include "telemetry/waits/collective_call.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline telemetry {

/// Looks at the collective calls in which ranks are now, and compares them with the calls of the same ordinal that
/// other members are in, have pending, or remember to have made. Compared are the function, the root, the bytes of
/// broadcasts and reductions, and the operation and kind of numbers of reductions.
std::vector<CollectiveMismatch> find_mismatches(const Members& members);

/// Compares all collective calls that ranks remember to have made, as they end: also those of a program that does not
/// hang, but computes something wrong. Not thread-safe.
class FinishedCollectives {
 public:
  /// Looks at the calls that have ended since the last time, and returns the mismatches that are new among the calls
  /// which all members with a record have made. Calls are missed if a rank makes more than its record holds in between.
  std::vector<CollectiveMismatch> observe(const Members& members);

 private:
  struct Instance {
    std::string name;
    std::size_t members = 0;
    std::vector<CollectiveMismatch::Variant> variants;
  };
  static constexpr std::size_t most_instances = 1 << 16;

  /// The call to look at next, by rank, pid, start time and thread slot.
  std::map<std::tuple<std::int32_t, int, std::uint64_t, unsigned>, std::uint64_t> next_;
  std::map<CollectiveInstance, Instance> open_;  ///< that not all members have made
};

}  // namespace bestride::inline telemetry
