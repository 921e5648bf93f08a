// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "telemetry/stacks/stack_tree.hpp"

namespace bestride::inline telemetry {
namespace {

/// A node of one frame, while stacks are added.
struct Growing {
  NamedFrame frame;
  std::set<std::int32_t> ranks;
  std::size_t threads = 0;
  std::map<std::pair<std::string, std::string>, Growing> children;  ///< by function and module
  // Threads that end here.
  NamedFrame place;
  std::set<std::int32_t> ending_ranks;
  std::size_t ending_threads = 0;
};

/// Forgets file and line if they differ.
void merge_place(NamedFrame& known, const NamedFrame& other, bool first) {
  if (first) {
    known = other;
  } else if (known.file != other.file) {
    known.file.clear();
    known.line = 0;
  } else if (known.line != other.line) {
    known.line = 0;
  }
}

void sort_nodes(std::vector<StackNode>& nodes) {
  const auto key = [](const StackNode& node) {
    const NamedFrame none;
    const NamedFrame& first = node.frames.empty() ? none : node.frames.front();
    return std::tuple(!node.thread.empty(), node.cut, ~node.ranks.size(), ~node.threads, node.thread, first.function,
                      first.module);
  };
  std::sort(nodes.begin(), nodes.end(), [&](const StackNode& a, const StackNode& b) { return key(a) < key(b); });
}

StackNode finished(const Growing* node) {
  StackNode result;
  result.ranks.assign(node->ranks.begin(), node->ranks.end());
  result.threads = node->threads;
  result.frames.push_back(node->frame);
  while (node->children.size() == 1 && node->ending_threads == 0) {
    node = &node->children.begin()->second;
    result.frames.push_back(node->frame);
  }
  for (const auto& [name, child] : node->children) result.children.push_back(finished(&child));
  if (!node->children.empty() && node->ending_threads > 0) {
    StackNode& end = result.children.emplace_back();
    end.kind = StackNode::Kind::itself;
    end.ranks.assign(node->ending_ranks.begin(), node->ending_ranks.end());
    end.threads = node->ending_threads;
    end.place = node->place;
  }
  sort_nodes(result.children);
  return result;
}

}  // namespace

std::vector<StackNode> merge_stacks(const std::vector<RankStack>& stacks) {
  std::map<std::pair<std::string, bool>, Growing> tops;  // each above the roots of one kind
  for (const RankStack& stack : stacks) {
    Growing* at = &tops[{stack.thread, stack.cut}];
    for (const NamedFrame& frame : stack.frames) {
      Growing& next = at->children[{frame.function, frame.module}];
      merge_place(next.frame, frame, next.threads == 0);
      next.ranks.insert(stack.rank);
      ++next.threads;
      at = &next;
    }
    if (stack.frames.empty()) continue;
    merge_place(at->place, stack.frames.back(), at->ending_threads == 0);
    at->ending_ranks.insert(stack.rank);
    ++at->ending_threads;
  }
  std::vector<StackNode> roots;
  for (const auto& [kind, top] : tops)
    for (const auto& [name, child] : top.children) {
      StackNode& root = roots.emplace_back(finished(&child));
      std::tie(root.thread, root.cut) = kind;
    }
  sort_nodes(roots);
  return roots;
}

}  // namespace bestride::inline telemetry
