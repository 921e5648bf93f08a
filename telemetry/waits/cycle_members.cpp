// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/cycle_members.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace bestride::inline telemetry {
namespace {

/// Nodes are the ranks, then the rank sets.
using Node = std::uint32_t;
using Edges = std::vector<std::vector<Node>>;

class Components {
 public:
  explicit Components(const Edges& edges) : edges_(edges), states_(edges.size()) {
    for (Node node = 0; node < edges.size(); ++node)
      if (states_[node].index == 0) search(node);
  }
  bool is_in_cycle(Node node) const { return states_[node].in_cycle; }

 private:
  struct State {
    std::uint32_t index = 0;  ///< order of the search, from 1; 0: not found yet
    std::uint32_t low = 0;
    bool open = false;  ///< its component is not complete
    bool in_cycle = false;
  };
  struct Visit {
    Node node;
    std::size_t next;  ///< edge
  };

  void enter(Node node) {
    states_[node].index = states_[node].low = ++found_;
    states_[node].open = true;
    open_.push_back(node);
    path_.push_back({node, 0});
  }

  // Not recursive: a chain of waiting ranks may be as long as the job is large.
  void search(Node start) {
    enter(start);
    while (!path_.empty()) {
      const Node node = path_.back().node;
      if (path_.back().next < edges_[node].size()) {
        const Node to = edges_[node][path_.back().next++];
        if (states_[to].index == 0)
          enter(to);
        else if (states_[to].open)
          states_[node].low = std::min(states_[node].low, states_[to].index);
        continue;
      }
      path_.pop_back();
      if (!path_.empty()) states_[path_.back().node].low = std::min(states_[path_.back().node].low, states_[node].low);
      if (states_[node].low == states_[node].index) close(node);
    }
  }

  void close(Node root) {
    // A node is not its own target, so a component of one node has no cycle.
    const bool in_cycle = open_.back() != root;
    for (Node node = ~root; node != root;) {
      node = open_.back();
      open_.pop_back();
      states_[node].open = false;
      states_[node].in_cycle = in_cycle;
    }
  }

  const Edges& edges_;
  std::vector<State> states_;
  std::vector<Node> open_;
  std::vector<Visit> path_;
  std::uint32_t found_ = 0;
};

}  // namespace

std::unordered_set<std::int32_t> cycle_members(const WaitGraph& graph,
                                               const std::function<bool(std::int32_t)>& counts) {
  std::unordered_map<std::int32_t, Node> node_of;
  std::vector<const RankWaits*> ranks;
  for (const RankWaits& rank : graph.ranks)
    if (counts(rank.rank)) {
      node_of.emplace(rank.rank, static_cast<Node>(ranks.size()));
      ranks.push_back(&rank);
    }
  Edges edges(ranks.size());
  std::unordered_map<const void*, Node> node_of_set;
  for (Node node = 0; node < ranks.size(); ++node)
    for (const ThreadWait& thread : ranks[node]->threads)
      for (const WaitCondition& condition : thread.conditions) {
        if (!condition.required || condition.ranks.empty()) continue;
        const auto [at, is_new] = node_of_set.try_emplace(condition.ranks.id(), static_cast<Node>(edges.size()));
        if (is_new) {
          std::vector<Node>& targets = edges.emplace_back();
          for (const std::int32_t target : condition.ranks)
            if (const auto known = node_of.find(target); known != node_of.end()) targets.push_back(known->second);
        }
        edges[node].push_back(at->second);
      }
  const Components components(edges);
  std::unordered_set<std::int32_t> result;
  for (Node node = 0; node < ranks.size(); ++node)
    if (components.is_in_cycle(node)) result.insert(ranks[node]->rank);
  return result;
}

}  // namespace bestride::inline telemetry
