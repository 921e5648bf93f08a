// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a wait-for graph means: which ranks hold up the others, and which wait for each other in a circle.
//
// A rank is deadlocked if it can't proceed whatever the ranks outside MPI do: the greatest set of waiting ranks each
// of which waits for ranks of the set (for all of its ranks in an AND, every one in an OR). Alternative considered:
// cycles alone, which are no deadlock if one of their ranks also waits for any of several.
#include <cstdint>
#include <functional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "telemetry/waits/wait_graph.hpp"

namespace bestride::inline telemetry {

struct Diagnosis {
  std::vector<std::int32_t> waiting;   ///< ranks that wait for a rank
  std::vector<std::int32_t> culprits;  ///< ranks that others wait for and that wait for nobody themselves
  std::vector<std::int32_t> deadlocked;
  /// A cycle of ranks of a group that wait for each other and for no other such group: each rank waits for the next
  /// one, the last one for the first. A short one, with the least number of waits for any of several ranks.
  struct Cycle {
    std::vector<std::int32_t> ranks;
    std::vector<std::int32_t> group;  ///< ascending
  };
  std::vector<Cycle> cycles;
};

/// `edges`: for `deadlocked` and `cycles`.
Diagnosis diagnose(const WaitGraph& graph, Edges edges = Edges::required);

/// For each rank, the ranks that wait for it.
class Waiters {
 public:
  /// `graph` must outlive this.
  explicit Waiters(const WaitGraph& graph);

  /// The ranks that wait for one of `targets`, directly or through others, ascending, without `targets`. `counts`: of a
  /// rank that waits; the others are not followed. Null: all count.
  std::vector<std::int32_t> held_up(const std::vector<std::int32_t>& targets,
                                    const std::function<bool(const RankWaits&)>& counts = nullptr) const;
  /// The rank sets that contain a rank, by number. Ranks in the same sets have the same waiters.
  const std::vector<std::size_t>& sets_of(std::int32_t rank) const;

 private:
  std::unordered_map<const void*, std::size_t> set_numbers_;
  std::vector<std::vector<const RankWaits*>> waiters_;  ///< of each set
  std::unordered_map<std::int32_t, std::vector<std::size_t>> sets_of_;
};

}  // namespace bestride::inline telemetry
