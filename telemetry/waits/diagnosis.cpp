// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/diagnosis.hpp"

#include <algorithm>
#include <deque>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "telemetry/waits/cycle_groups.hpp"

namespace bestride::inline telemetry {
namespace {

/// Calls visit(condition) for every condition by which a rank waits for others.
template <class Visit>
void each_condition(const RankWaits& rank, Edges edges, Visit visit) {
  for (const ThreadWait& thread : rank.threads)
    for (const WaitCondition& condition : thread.conditions)
      if (follows(edges, condition)) visit(condition);
}

/// The ranks that may still proceed: those outside MPI, and those that wait only for ranks that may proceed.
class Liveness {
 public:
  Liveness(const WaitGraph& graph, const Waiters& waiters, Edges edges)
      : graph_(graph),
        waiters_(waiters),
        edges_(edges),
        live_(graph.ranks.size()),
        live_members_(waiters.sets().size()) {
    for (const RankWaits& rank : graph.ranks)
      if (!rank.gone && !rank.every_thread_waits) live_[graph.position(rank)] = true;
    for (std::size_t set = 0; set < live_members_.size(); ++set)
      for (const std::int32_t member : waiters.sets()[set]) live_members_[set] += !stuck(member);
    for (const RankWaits& rank : graph.ranks) look_at(rank);
    while (!freed_.empty()) {
      const RankWaits* const rank = freed_.back();
      freed_.pop_back();
      for (const Waiters::SetNumber set : waiters.sets_of(rank->rank)) {
        const std::size_t live = ++live_members_[set];
        if (live == 1 || live == waiters.sets()[set].size())  // for conditions of any, of all
          for (const RankWaits* const waiter : waiters.waiters_of(set)) look_at(*waiter);
      }
    }
  }
  /// False for a rank without a record.
  bool stuck(std::int32_t rank) const {
    const RankWaits* const waits = graph_.find(rank);
    return waits && !live_[graph_.position(*waits)];
  }

 private:
  void look_at(const RankWaits& rank) {
    if (live_[graph_.position(rank)] || rank.gone || !can_proceed(rank)) return;
    live_[graph_.position(rank)] = true;
    freed_.push_back(&rank);
  }
  bool can_proceed(const RankWaits& rank) const {
    return std::any_of(rank.threads.begin(), rank.threads.end(),
                       [this](const ThreadWait& t) { return satisfiable(t); });
  }
  bool satisfiable(const ThreadWait& thread) const {
    const auto one = [this](const WaitCondition& condition) { return satisfiable(condition); };
    // An AND with unknown conditions still waits for the known ones; an unknown condition may satisfy an OR.
    if (thread.kind == WaitKind::any)
      return !thread.resolved || std::any_of(thread.conditions.begin(), thread.conditions.end(), one);
    return std::all_of(thread.conditions.begin(), thread.conditions.end(), one);
  }
  bool satisfiable(const WaitCondition& condition) const {
    const bool any = condition.kind == WaitKind::any;
    if (!follows(edges_, condition)) {
      const bool holds = condition.required || (edges_ == Edges::unmatched && !condition.matched);
      return !holds || !any || condition.unseen > 0;
    }
    if (any && condition.unseen > 0) return true;
    const std::size_t live = live_members_[waiters_.set_of(condition)];
    return any ? live > 0 : live == condition.ranks.size();
  }

  const WaitGraph& graph_;
  const Waiters& waiters_;
  const Edges edges_;
  std::vector<bool> live_;                 ///< by position in the graph
  std::vector<std::size_t> live_members_;  ///< of each set
  std::vector<const RankWaits*> freed_;    ///< live, not yet counted in its sets
};

/// Shortest way from `start` back to itself within `group`, ascending; empty if there is none.
std::vector<std::int32_t> shortest_cycle(const WaitGraph& graph, const std::vector<std::int32_t>& group,
                                         std::int32_t start, Edges edges) {
  std::unordered_map<std::int32_t, std::int32_t> from;  // rank -> the rank before it
  std::unordered_set<const void*> visited;              // sets
  std::deque<std::int32_t> open{start};
  while (!open.empty()) {
    const std::int32_t rank = open.front();
    open.pop_front();
    bool closed = false;
    each_condition(*graph.find(rank), edges, [&](const WaitCondition& condition) {
      if (closed || !visited.insert(condition.ranks.id()).second) return;
      closed = condition.ranks.contains(start);
      if (closed) return;
      for (const std::int32_t target : condition.ranks)
        if (std::binary_search(group.begin(), group.end(), target) && from.emplace(target, rank).second)
          open.push_back(target);
    });
    if (!closed) continue;
    std::vector<std::int32_t> cycle;
    for (std::int32_t at = rank; at != start; at = from.at(at)) cycle.push_back(at);
    cycle.push_back(start);
    std::reverse(cycle.begin(), cycle.end());
    return cycle;
  }
  return {};
}

/// Ranks at which the search for the cycle of a group begins: those that wait for a message from a named rank, which
/// are the best evidence; if there are none, the first rank.
std::vector<std::int32_t> starts_in(const WaitGraph& graph, const std::vector<std::int32_t>& group, Edges edges) {
  const std::size_t most = std::clamp<std::size_t>((1 << 16) / group.size(), 1, 64);  // a walk visits the whole group
  std::vector<std::int32_t> result;
  for (const std::int32_t rank : group) {
    bool by_name = false;
    each_condition(*graph.find(rank), edges, [&](const WaitCondition& condition) {
      by_name = by_name || (condition.ordinal == 0 && condition.kind == WaitKind::all);
    });
    if (by_name && result.size() < most) result.push_back(rank);
  }
  if (result.empty()) result.push_back(group.front());
  return result;
}

std::vector<std::int32_t> cycle_in(const WaitGraph& graph, const std::vector<std::int32_t>& group, Edges edges) {
  std::vector<std::int32_t> best;
  // Number of weak edges, length, and negated longest wait: the rank that hangs longest is closest to the cause.
  std::tuple<std::size_t, std::size_t, double> best_cost;
  for (const std::int32_t start : starts_in(graph, group, edges)) {
    std::vector<std::int32_t> cycle = shortest_cycle(graph, group, start, edges);
    if (cycle.empty()) continue;
    std::size_t weak = 0;
    double seconds = 0;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const WaitCondition* const edge = graph.edge(cycle[i], cycle[(i + 1) % cycle.size()]);
      weak += !edge->required || edge->kind == WaitKind::any;
      seconds = std::max(seconds, graph.find(cycle[i])->seconds);
    }
    const std::tuple cost{weak, cycle.size(), -seconds};
    if (best.empty() || cost < best_cost) best = std::move(cycle), best_cost = cost;
  }
  return best;
}

}  // namespace

Waiters::Waiters(const WaitGraph& graph) : graph_(graph), numbers_of_singles_(graph.ranks.size(), no_set) {
  std::vector<std::pair<SetNumber, const RankWaits*>> waiters;
  for (const RankWaits& rank : graph.ranks)
    each_condition(rank, Edges::unmatched, [&](const WaitCondition& condition) {
      SetNumber& number = number_of(condition.ranks);
      if (number == no_set) {
        number = static_cast<SetNumber>(sets_.size());
        sets_.push_back(condition.ranks);
      }
      waiters.emplace_back(number, &rank);
    });
  waiters_ = {sets_.size(), waiters};
  for (const RankSet& set : sets_)
    for (const std::int32_t target : set)
      if (!graph.find(target)) others_.push_back(target);
  std::sort(others_.begin(), others_.end());
  others_.erase(std::unique(others_.begin(), others_.end()), others_.end());
  std::vector<std::pair<std::uint32_t, SetNumber>> targets;
  for (SetNumber set = 0; set < sets_.size(); ++set)
    for (const std::int32_t target : sets_[set]) targets.emplace_back(static_cast<std::uint32_t>(bucket(target)), set);
  sets_of_ = {graph.ranks.size() + others_.size(), targets};
}

/// The only member of a set, if it has a record; else null.
const RankWaits* Waiters::only_member(const RankSet& set) const noexcept {
  return set.size() == 1 ? graph_.find(set.front()) : nullptr;
}

Waiters::SetNumber& Waiters::number_of(const RankSet& set) {
  const RankWaits* const only = only_member(set);
  return only ? numbers_of_singles_[graph_.position(*only)]
              : numbers_of_others_.try_emplace(set.id(), no_set).first->second;
}

Waiters::SetNumber Waiters::set_of(const WaitCondition& condition) const {
  const RankSet& set = condition.ranks;
  const RankWaits* const only = only_member(set);
  return only ? numbers_of_singles_[graph_.position(*only)] : numbers_of_others_.at(set.id());
}

std::size_t Waiters::bucket(std::int32_t rank) const noexcept {
  if (const RankWaits* const waits = graph_.find(rank)) return graph_.position(*waits);
  const auto other = std::lower_bound(others_.begin(), others_.end(), rank);
  const bool known = other != others_.end() && *other == rank;
  return known ? graph_.ranks.size() + static_cast<std::size_t>(other - others_.begin()) : no_bucket;
}

std::span<const Waiters::SetNumber> Waiters::sets_of(std::int32_t rank) const noexcept {
  const std::size_t at = bucket(rank);
  return at != no_bucket ? sets_of_[at] : std::span<const SetNumber>();
}

std::vector<std::int32_t> Waiters::held_up(const std::vector<std::int32_t>& targets,
                                           const std::function<bool(const RankWaits&)>& counts) const {
  std::vector<bool> found(graph_.ranks.size()), visited(sets_.size());
  for (const std::int32_t target : targets)
    if (const RankWaits* const waits = graph_.find(target)) found[graph_.position(*waits)] = true;
  std::vector<std::int32_t> result;
  const auto follow = [&](std::int32_t rank) {
    for (const SetNumber set : sets_of(rank)) {
      if (visited[set]) continue;
      visited[set] = true;
      for (const RankWaits* const waiter : waiters_[set]) {
        if (found[graph_.position(*waiter)] || (counts && !counts(*waiter))) continue;
        found[graph_.position(*waiter)] = true;
        result.push_back(waiter->rank);
      }
    }
  };
  for (const std::int32_t target : targets) follow(target);
  for (std::size_t i = 0; i < result.size(); ++i) follow(result[i]);
  std::sort(result.begin(), result.end());
  return result;
}

Diagnosis diagnose(const WaitGraph& graph, const Waiters& waiters, Edges edges) {
  Diagnosis result;
  std::vector<std::int32_t> targets;
  for (const RankSet& set : waiters.sets()) targets.insert(targets.end(), set.begin(), set.end());
  std::sort(targets.begin(), targets.end());
  targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
  for (const std::int32_t target : targets) {
    const RankWaits* const rank = graph.find(target);
    if (!rank || !rank->waits()) result.culprits.push_back(target);
  }
  const Liveness liveness(graph, waiters, edges);
  const auto is_deadlocked = [&](std::int32_t number) {
    const RankWaits* const rank = graph.find(number);
    return rank && !rank->gone && liveness.stuck(number);
  };
  for (const RankWaits& rank : graph.ranks) {
    if (rank.waits()) result.waiting.push_back(rank.rank);
    if (is_deadlocked(rank.rank)) result.deadlocked.push_back(rank.rank);
  }
  for (CycleGroup& group : cycle_groups(graph, is_deadlocked, edges))
    if (group.final)
      if (auto cycle = cycle_in(graph, group.ranks, edges); !cycle.empty())
        result.cycles.push_back({std::move(cycle), std::move(group.ranks)});
  return result;
}

}  // namespace bestride::inline telemetry
