// SPDX-License-Identifier: Apache-2.0
#pragma once
// Members of a communicator that make different collective calls where MPI asks for the same one.
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "telemetry/waits/collective_call.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline telemetry {

/// The calls that the members of a communicator have made as one of their collective calls.
class ComparedCalls {
 public:
  /// Replaces an earlier call of the rank.
  void add(const RankSnapshot& rank, const CommunicatorSnapshot& communicator, const CollectiveCall& call);
  std::size_t made() const noexcept;
  std::size_t members() const noexcept { return members_; }
  std::optional<CollectiveMismatch> mismatch(const CollectiveInstance& instance) &&;

  struct Call {
    std::int32_t rank;    ///< in MPI_COMM_WORLD
    std::int32_t member;  ///< in its group
    std::uint32_t side;
    CollectiveCall call;
  };

 private:
  bool find_root(std::vector<std::int32_t>& culprits) const;

  std::string name_;
  std::size_t members_ = 0;
  bool inter_ = false;
  std::vector<CollectiveMismatch::Variant> variants_;
  std::vector<Call> calls_;  ///< of an intercommunicator
  std::int32_t sizes_[2] = {0, 0};
};

/// Looks at the collective calls in which ranks are now, and compares them with the calls of the same ordinal that
/// other members are in, have pending, or remember to have made. Compared are the function, the root, the bytes of
/// calls in which they are the same for all ranks, and the operation and kind of numbers of reductions.
std::vector<CollectiveMismatch> find_mismatches(const Members& members);

/// Compares all collective calls that ranks remember to have made, as they end: also those of a program that does not
/// hang, but computes something wrong. Not thread-safe.
class FinishedCollectives {
 public:
  /// Looks at the calls that have ended since the last time, and returns the mismatches that are new among the calls
  /// which all members with a record have made. Calls are missed if a rank makes more than its record holds in between.
  std::vector<CollectiveMismatch> observe(const Members& members);

 private:
  static constexpr std::size_t most_instances = 1 << 16;

  /// The call to look at next, by rank, pid, start time and thread slot.
  std::map<std::tuple<std::int32_t, int, std::uint64_t, unsigned>, std::uint64_t> next_;
  std::map<CollectiveInstance, ComparedCalls> open_;  ///< that not all members have made
};

}  // namespace bestride::inline telemetry
