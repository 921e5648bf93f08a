// SPDX-License-Identifier: Apache-2.0
#include "telemetry/waits/cycle_groups.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace bestride::inline telemetry {
namespace {

/// Nodes are the ranks, then the rank sets.
using Node = std::uint32_t;
using Targets = std::vector<std::vector<Node>>;

class Components {
 public:
  explicit Components(const Targets& edges) : edges_(edges), states_(edges.size()) {
    for (Node node = 0; node < edges.size(); ++node)
      if (states_[node].index == 0) search(node);
  }
  /// Components with a cycle; `final`: no path leads from it to another one.
  struct Component {
    std::vector<Node> nodes;
    bool final;
  };
  const std::vector<Component>& cycles() const { return cycles_; }

 private:
  struct State {
    std::uint32_t index = 0;  ///< order of the search, from 1; 0: not found yet
    std::uint32_t low = 0;
    bool open = false;  ///< its component is not complete
    bool leads_to_cycle = false;
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

  /// The components that it leads to are closed already.
  void close(Node root) {
    Component component{{}, true};
    do {
      component.nodes.push_back(open_.back());
      states_[open_.back()].open = false;
      open_.pop_back();
    } while (component.nodes.back() != root);
    for (const Node node : component.nodes)
      for (const Node to : edges_[node]) component.final = component.final && !states_[to].leads_to_cycle;
    // A node is not its own target, so a component of one node has no cycle.
    const bool has_cycle = component.nodes.size() > 1;
    for (const Node node : component.nodes) states_[node].leads_to_cycle = has_cycle || !component.final;
    if (has_cycle) cycles_.push_back(std::move(component));
  }

  const Targets& edges_;
  std::vector<State> states_;
  std::vector<Node> open_;
  std::vector<Visit> path_;
  std::vector<Component> cycles_;
  std::uint32_t found_ = 0;
};

}  // namespace

std::vector<CycleGroup> cycle_groups(const WaitGraph& graph, const std::function<bool(std::int32_t)>& counts,
                                     Edges followed) {
  constexpr Node none = ~Node{0};
  std::vector<Node> node_of(graph.ranks.size(), none);  // by position in the graph
  std::vector<const RankWaits*> ranks;
  for (const RankWaits& rank : graph.ranks)
    if (counts(rank.rank)) {
      node_of[graph.position(rank)] = static_cast<Node>(ranks.size());
      ranks.push_back(&rank);
    }
  Targets edges(ranks.size());
  std::unordered_map<const void*, Node> node_of_set;
  for (Node node = 0; node < ranks.size(); ++node)
    for (const ThreadWait& thread : ranks[node]->threads)
      for (const WaitCondition& condition : thread.conditions) {
        if (!follows(followed, condition)) continue;
        const auto [at, is_new] = node_of_set.try_emplace(condition.ranks.id(), static_cast<Node>(edges.size()));
        if (is_new) {
          std::vector<Node>& targets = edges.emplace_back();
          for (const std::int32_t target : condition.ranks)
            if (const RankWaits* const known = graph.find(target); known && node_of[graph.position(*known)] != none)
              targets.push_back(node_of[graph.position(*known)]);
        }
        edges[node].push_back(at->second);
      }
  const Components components(edges);
  std::vector<CycleGroup> result;
  for (const Components::Component& component : components.cycles()) {
    CycleGroup& group = result.emplace_back();
    group.final = component.final;
    for (const Node node : component.nodes)
      if (node < ranks.size()) group.ranks.push_back(ranks[node]->rank);
    std::sort(group.ranks.begin(), group.ranks.end());
  }
  std::sort(result.begin(), result.end(), [](const CycleGroup& a, const CycleGroup& b) { return a.ranks < b.ranks; });
  return result;
}

}  // namespace bestride::inline telemetry
