// SPDX-License-Identifier: Apache-2.0
#pragma once
// CollectiveProgress: which members have not begun a collective call, found once for all ranks that wait in it.
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "telemetry/waits/members.hpp"
#include "telemetry/waits/rank_set.hpp"

namespace bestride::inline telemetry {

class CollectiveProgress {
 public:
  /// `members` must outlive this.
  explicit CollectiveProgress(const Members& members) : members_(members) {}

  /// The members of a communicator that have a record; see Members::seen().
  const std::vector<Members::Member>& members(const CommunicatorSnapshot& communicator);

  struct Call {
    RankSet missing;                               ///< in MPI_COMM_WORLD: surely not begun
    std::vector<Members::Member> missing_members;  ///< the same ranks, as members
    std::int32_t unseen = 0;                       ///< members that may not have begun: without a record, or not known
  };
  /// The collective call `ordinal` of a communicator.
  const Call& call(const CommunicatorSnapshot& communicator, std::uint32_t ordinal);

  /// The ranks that have not called MPI_Finalize.
  const RankSet& not_finalizing();

 private:
  const Members& members_;
  std::map<std::uint64_t, std::vector<Members::Member>> by_uid_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, Call> calls_;
  std::optional<RankSet> not_finalizing_;
};

}  // namespace bestride::inline telemetry
