// SPDX-License-Identifier: Apache-2.0
#pragma once
// The members of communicators as ranks of MPI_COMM_WORLD, from the records of all ranks.
//
// A record describes evenly spaced members by two numbers. The members of any other communicator are known only from
// the members' own records, which have its identity and their rank in it.
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

/// The members are described by two numbers.
bool is_evenly_spaced(const CommunicatorSnapshot& communicator);
/// All members, of an intercommunicator those of both groups.
inline std::int32_t member_count(const CommunicatorSnapshot& communicator) {
  return communicator.size + communicator.local_size;
}
/// World rank of a member of such a communicator; -1 if it is another one, or has no such member.
std::int32_t world_rank_of(const CommunicatorSnapshot& communicator, std::int32_t member);

class Members {
 public:
  /// `job` must outlive this.
  explicit Members(std::span<const RankSnapshot> job);

  /// All snapshots.
  std::span<const RankSnapshot> job() const noexcept { return job_; }
  /// The snapshots that count, by world rank: one for each rank.
  const std::vector<std::pair<std::int32_t, const RankSnapshot*>>& ranks() const noexcept { return ranks_; }
  static constexpr std::size_t none = ~std::size_t{0};
  /// Index in ranks() of a world rank; none if there is no snapshot of it.
  std::size_t position(std::int32_t world_rank) const noexcept;
  /// The snapshot of a world rank; null if there is none.
  const RankSnapshot* find(std::int32_t world_rank) const noexcept;
  /// World rank of a rank that calls on the communicator name; -1 if it is not known or out of range.
  std::int32_t world_rank(const CommunicatorSnapshot& communicator, std::int32_t member) const;

  struct Member {
    std::int32_t member;  ///< rank in the communicator, of an intercommunicator in the own group
    std::int32_t world_rank;
    const RankSnapshot* rank;
    const CommunicatorSnapshot*
        record;  ///< the member's own record of the communicator, or null; of an intercommunicator never null
  };
  /// The members that have records. Not for communicators whose uid is 0.
  std::vector<Member> seen(const CommunicatorSnapshot& communicator) const;

 private:
  struct Own {
    const RankSnapshot* rank;
    const CommunicatorSnapshot* record;
  };
  std::span<const RankSnapshot> job_;
  std::vector<std::pair<std::int32_t, const RankSnapshot*>> ranks_;  ///< ascending
  std::map<std::uint64_t, std::vector<Own>> by_uid_;                 ///< by world rank
  /// World ranks of the members of communicators that are not evenly spaced, by rank there. The key is the uid, for
  /// each group of an intercommunicator another one.
  static std::uint64_t group_key(const CommunicatorSnapshot& communicator, std::uint32_t side) {
    return communicator.kind == CommunicatorKind::inter ? ~communicator.uid + side : communicator.uid;
  }
  std::map<std::uint64_t, std::vector<std::pair<std::int32_t, std::int32_t>>> scattered_;
};

}  // namespace bestride::inline telemetry
