// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/diagnosis.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace bestride::inline telemetry {
namespace {

/// Calls visit(rank) for every rank that `rank` waits for.
template <class Visit>
void each_target(const RankWaits& rank, bool only_required, Visit visit) {
  for (const ThreadWait& thread : rank.threads)
    for (const WaitCondition& condition : thread.conditions)
      if (condition.required || (!only_required && !condition.matched))
        for (const std::int32_t target : condition.ranks) visit(target);
}

/// The ranks that may still proceed, by repetition until nothing changes.
class Liveness {
 public:
  explicit Liveness(const WaitGraph& graph) : graph_(graph) {
    for (const RankWaits& rank : graph.ranks)
      if (rank.gone || rank.every_thread_waits) stuck_.insert(rank.rank);
    for (bool changed = true; changed;) {
      changed = false;
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
    if (!condition.required) return true;
    const auto lives = [this](std::int32_t rank) { return !stuck(rank); };
    if (condition.kind == WaitKind::any)
      return condition.unseen > 0 || std::any_of(condition.ranks.begin(), condition.ranks.end(), lives);
    return std::all_of(condition.ranks.begin(), condition.ranks.end(), lives);
  }

  const WaitGraph& graph_;
  std::set<std::int32_t> stuck_;
};

/// Shortest way from `start` back to itself within `stuck` ranks; empty if there is none.
std::vector<std::int32_t> shortest_cycle(const WaitGraph& graph, const Liveness& liveness, std::int32_t start) {
  std::map<std::int32_t, std::int32_t> from;  // rank -> the rank before it
  std::deque<std::int32_t> open{start};
  while (!open.empty()) {
    const std::int32_t rank = open.front();
    open.pop_front();
    const RankWaits* const waits = graph.find(rank);
    if (!waits) continue;
    bool closed = false;
    each_target(*waits, true, [&](std::int32_t target) {
      if (!liveness.stuck(target) || closed) return;
      if (target == start)
        closed = true;
      else if (from.emplace(target, rank).second)
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

/// The ranks that can be reached from `start` along required edges.
void reach(const WaitGraph& graph, std::int32_t start, std::set<std::int32_t>& reached) {
  std::deque<std::int32_t> open{start};
  while (!open.empty()) {
    const RankWaits* const waits = graph.find(open.front());
    open.pop_front();
    if (waits)
      each_target(*waits, true, [&](std::int32_t target) {
        if (reached.insert(target).second) open.push_back(target);
      });
  }
}

}  // namespace

std::vector<std::int32_t> held_up(const WaitGraph& graph, const std::vector<std::int32_t>& targets,
                                  const std::function<bool(const RankWaits&)>& counts) {
  std::map<std::int32_t, std::vector<std::int32_t>> waiters;  // of each rank
  for (const RankWaits& rank : graph.ranks)
    if (!counts || counts(rank))
      each_target(rank, false, [&](std::int32_t target) { waiters[target].push_back(rank.rank); });
  std::set<std::int32_t> found(targets.begin(), targets.end());
  std::deque<std::int32_t> open(targets.begin(), targets.end());
  while (!open.empty()) {
    const auto next = waiters.find(open.front());
    open.pop_front();
    if (next == waiters.end()) continue;
    for (const std::int32_t rank : next->second)
      if (found.insert(rank).second) open.push_back(rank);
  }
  for (const std::int32_t target : targets) found.erase(target);
  return {found.begin(), found.end()};
}

Diagnosis diagnose(const WaitGraph& graph) {
  Diagnosis result;
  std::set<std::int32_t> targets;
  for (const RankWaits& rank : graph.ranks) {
    each_target(rank, false, [&](std::int32_t target) { targets.insert(target); });
    if (rank.waits()) result.waiting.push_back(rank.rank);
  }
  for (const std::int32_t target : targets) {
    const RankWaits* const rank = graph.find(target);
    if (!rank || !rank->waits()) result.culprits.push_back(target);
  }
  const Liveness liveness(graph);
  std::set<std::int32_t> covered;
  for (const RankWaits& rank : graph.ranks) {
    if (rank.gone || !liveness.stuck(rank.rank)) continue;
    result.deadlocked.push_back(rank.rank);
    if (covered.count(rank.rank)) continue;
    auto cycle = shortest_cycle(graph, liveness, rank.rank);
    if (cycle.empty()) continue;
    reach(graph, rank.rank, covered);
    result.cycles.push_back(std::move(cycle));
  }
  return result;
}

}  // namespace bestride::inline telemetry
