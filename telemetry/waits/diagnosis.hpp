// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a wait-for graph means: which ranks hold up the others, and which wait for each other in a circle.
//
// A rank is deadlocked if it can't proceed whatever the ranks outside MPI do: the greatest set of waiting ranks each
// of which waits for ranks of the set (for all of its ranks in an AND, every one in an OR). Alternative considered:
// cycles alone, which are no deadlock if one of their ranks also waits for any of several.
#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>
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

/// Lists of values in one array, one list for each number below a count.
template <class Value>
class Buckets {
 public:
  Buckets() = default;
  /// `pairs`: numbers with values; the values of a number keep their order.
  Buckets(std::size_t count, std::span<const std::pair<std::uint32_t, Value>> pairs)
      : begins_(count + 1), values_(pairs.size()) {
    for (const auto& [number, value] : pairs) ++begins_[number + 1];
    for (std::size_t i = 1; i <= count; ++i) begins_[i] += begins_[i - 1];
    std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
    for (const auto& [number, value] : pairs) values_[next[number]++] = value;
  }
  std::span<const Value> operator[](std::size_t number) const noexcept {
    return {values_.data() + begins_[number], begins_[number + 1] - begins_[number]};
  }

 private:
  std::vector<std::size_t> begins_;
  std::vector<Value> values_;
};

/// The ranks that wait for each rank.
class Waiters {
 public:
  /// `graph` must outlive this.
  explicit Waiters(const WaitGraph& graph);

  /// The ranks that wait for one of `targets`, directly or through others, ascending, without `targets`. `counts`: of a
  /// rank that waits; the others are not followed. Null: all count.
  std::vector<std::int32_t> held_up(const std::vector<std::int32_t>& targets,
                                    const std::function<bool(const RankWaits&)>& counts = nullptr) const;

  /// The different sets of ranks that conditions name that are not matched.
  std::span<const RankSet> sets() const noexcept { return sets_; }
  using SetNumber = std::uint32_t;  ///< index in sets()
  /// The set of such a condition.
  SetNumber set_of(const WaitCondition& condition) const;
  /// The ranks that have a condition with this set.
  std::span<const RankWaits* const> waiters_of(SetNumber set) const noexcept { return waiters_[set]; }
  /// The sets that contain a rank, ascending. Ranks in the same sets have the same waiters.
  std::span<const SetNumber> sets_of(std::int32_t rank) const noexcept;

 private:
  static constexpr std::size_t no_bucket = ~std::size_t{0};
  /// The index of a rank in `sets_of_`; no_bucket if no set contains it.
  std::size_t bucket(std::int32_t rank) const noexcept;

  const WaitGraph& graph_;
  static constexpr SetNumber no_set = ~SetNumber{0};
  /// Where the number of a set is kept; no_set if it has none yet.
  SetNumber& number_of(const RankSet& set);
  const RankWaits* only_member(const RankSet& set) const noexcept;

  std::vector<RankSet> sets_;
  std::vector<SetNumber> numbers_of_singles_;                     ///< sets of one rank of the graph, in its order
  std::unordered_map<const void*, SetNumber> numbers_of_others_;  ///< by id
  Buckets<const RankWaits*> waiters_;                             ///< by set
  std::vector<std::int32_t> others_;                              ///< ranks of sets that have no record, ascending
  Buckets<SetNumber> sets_of_;  ///< of the ranks of the graph, in its order, and then of `others_`
};

/// `waiters`: of the same graph. `edges`: for `deadlocked` and `cycles`. Time and memory in proportion to the ranks and
/// the sizes of the different rank sets.
Diagnosis diagnose(const WaitGraph& graph, const Waiters& waiters, Edges edges = Edges::required);
inline Diagnosis diagnose(const WaitGraph& graph) { return diagnose(graph, Waiters(graph)); }

}  // namespace bestride::inline telemetry
