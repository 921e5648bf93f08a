// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/diagnosis.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>
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

/// Sets that a walk over the graph has visited.
using Visited = std::unordered_set<const void*>;

/// The ranks that may still proceed, by repetition until nothing changes.
class Liveness {
 public:
  Liveness(const WaitGraph& graph, Edges edges) : edges_(edges) {
    for (const RankWaits& rank : graph.ranks)
      if (rank.gone || rank.every_thread_waits) stuck_.insert(rank.rank);
    for (bool changed = true; changed;) {
      changed = false;
      satisfiable_.clear();
      for (const RankWaits& rank : graph.ranks)
        if (stuck_.count(rank.rank) && !rank.gone && can_proceed(rank)) {
          stuck_.erase(rank.rank);
          changed = true;
        }
    }
  }
  bool stuck(std::int32_t rank) const { return stuck_.count(rank) != 0; }

 private:
  bool can_proceed(const RankWaits& rank) const {
    return std::any_of(rank.threads.begin(), rank.threads.end(),
                       [this](const ThreadWait& t) { return satisfiable(t); });
  }
  bool satisfiable(const ThreadWait& thread) const {
    const auto one = [this](const WaitCondition& condition) { return satisfiable(condition); };
    // An AND that misses some of its conditions still waits for the others; an OR might be satisfied by a missing one.
    if (thread.kind == WaitKind::any)
      return !thread.resolved || std::any_of(thread.conditions.begin(), thread.conditions.end(), one);
    return std::all_of(thread.conditions.begin(), thread.conditions.end(), one);
  }
  bool satisfiable(const WaitCondition& condition) const {
    if (!follows(edges_, condition)) {
      const bool holds = condition.required || (edges_ == Edges::unmatched && !condition.matched);
      return !holds || condition.kind == WaitKind::all || condition.unseen > 0;
    }
    const bool any = condition.kind == WaitKind::any;
    if (any && condition.unseen > 0) return true;
    // What is found for a set stays until the next round: ranks only become free, so "not yet" is no error.
    const auto [at, is_new] = satisfiable_.try_emplace({condition.ranks.id(), any});
    const auto lives = [this](std::int32_t rank) { return !stuck(rank); };
    if (is_new)
      at->second = any ? std::any_of(condition.ranks.begin(), condition.ranks.end(), lives)
                       : std::all_of(condition.ranks.begin(), condition.ranks.end(), lives);
    return at->second;
  }

  const Edges edges_;
  std::unordered_set<std::int32_t> stuck_;
  mutable std::map<std::pair<const void*, bool>, bool> satisfiable_;  ///< of sets, in this round
};

/// Shortest way from `start` back to itself within `group`, ascending; empty if there is none.
std::vector<std::int32_t> shortest_cycle(const WaitGraph& graph, const std::vector<std::int32_t>& group,
                                         std::int32_t start, Edges edges) {
  std::unordered_map<std::int32_t, std::int32_t> from;  // rank -> the rank before it
  Visited visited;
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

/// Ranks at which the search for the cycle of a group begins: those that wait for a message from a certain rank tell
/// most; else the first one.
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
  // Edges that prove less, length, and the time for which nobody has waited: what hangs longest is next to the cause.
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

Waiters::Waiters(const WaitGraph& graph) {
  for (const RankWaits& rank : graph.ranks)
    each_condition(rank, Edges::unmatched, [&](const WaitCondition& condition) {
      const auto [at, is_new] = set_numbers_.try_emplace(condition.ranks.id(), waiters_.size());
      if (is_new) {
        waiters_.emplace_back();
        for (const std::int32_t target : condition.ranks) sets_of_[target].push_back(at->second);
      }
      std::vector<const RankWaits*>& waiters = waiters_[at->second];
      if (waiters.empty() || waiters.back() != &rank) waiters.push_back(&rank);
    });
}

const std::vector<std::size_t>& Waiters::sets_of(std::int32_t rank) const {
  static const std::vector<std::size_t> none;
  const auto known = sets_of_.find(rank);
  return known != sets_of_.end() ? known->second : none;
}

std::vector<std::int32_t> Waiters::held_up(const std::vector<std::int32_t>& targets,
                                           const std::function<bool(const RankWaits&)>& counts) const {
  std::unordered_set<std::int32_t> found(targets.begin(), targets.end());
  std::vector<bool> visited(waiters_.size());
  std::deque<std::int32_t> open(targets.begin(), targets.end());
  while (!open.empty()) {
    const std::vector<std::size_t>& sets = sets_of(open.front());
    open.pop_front();
    for (const std::size_t set : sets) {
      if (visited[set]) continue;
      visited[set] = true;
      for (const RankWaits* const waiter : waiters_[set])
        if ((!counts || counts(*waiter)) && found.insert(waiter->rank).second) open.push_back(waiter->rank);
    }
  }
  for (const std::int32_t target : targets) found.erase(target);
  std::vector<std::int32_t> result(found.begin(), found.end());
  std::sort(result.begin(), result.end());
  return result;
}

Diagnosis diagnose(const WaitGraph& graph, Edges edges) {
  Diagnosis result;
  std::set<std::int32_t> targets;
  Visited visited;
  for (const RankWaits& rank : graph.ranks) {
    each_condition(rank, Edges::unmatched, [&](const WaitCondition& condition) {
      if (visited.insert(condition.ranks.id()).second) targets.insert(condition.ranks.begin(), condition.ranks.end());
    });
    if (rank.waits()) result.waiting.push_back(rank.rank);
  }
  for (const std::int32_t target : targets) {
    const RankWaits* const rank = graph.find(target);
    if (!rank || !rank->waits()) result.culprits.push_back(target);
  }
  const Liveness liveness(graph, edges);
  const auto is_deadlocked = [&](std::int32_t number) {
    const RankWaits* const rank = graph.find(number);
    return rank && !rank->gone && liveness.stuck(number);
  };
  for (const RankWaits& rank : graph.ranks)
    if (is_deadlocked(rank.rank)) result.deadlocked.push_back(rank.rank);
  for (CycleGroup& group : cycle_groups(graph, is_deadlocked, edges))
    if (group.final)
      if (auto cycle = cycle_in(graph, group.ranks, edges); !cycle.empty())
        result.cycles.push_back({std::move(cycle), std::move(group.ranks)});
  return result;
}

}  // namespace bestride::inline telemetry
