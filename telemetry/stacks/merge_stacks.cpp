// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "telemetry/stacks/stack_tree.hpp"

namespace bestride::inline telemetry {
namespace {

/// Different lines of a function at which threads are, called from the same place, that are kept apart.
constexpr std::size_t most_lines_apart = 4;

/// A node of one frame, while stacks are added.
struct Growing {
  using Place = std::tuple<std::string, std::string, std::string, int>;  ///< function, module, file and line
  NamedFrame frame;
  std::set<std::int32_t> ranks;
  std::size_t threads = 0;
  std::map<Place, Growing> children;
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

/// Adds the threads of `other`.
void absorb(Growing& node, const Growing& other) {
  merge_place(node.frame, other.frame, node.threads == 0);
  node.ranks.insert(other.ranks.begin(), other.ranks.end());
  node.threads += other.threads;
  if (other.ending_threads > 0) merge_place(node.place, other.place, node.ending_threads == 0);
  node.ending_ranks.insert(other.ending_ranks.begin(), other.ending_ranks.end());
  node.ending_threads += other.ending_threads;
  for (const auto& [place, child] : other.children) absorb(node.children[place], child);
}

/// Makes one node of those of a function that is at too many different lines.
void join_lines(Growing& node) {
  for (auto first = node.children.begin(); first != node.children.end();) {
    const auto is_other = [&](const auto& child) {
      const NamedFrame &a = child.second.frame, &b = first->second.frame;
      return a.function != b.function || a.module != b.module;
    };
    const auto end = std::find_if(first, node.children.end(), is_other);
    if (static_cast<std::size_t>(std::distance(first, end)) > most_lines_apart) {
      for (auto other = std::next(first); other != end; other = node.children.erase(other))
        absorb(first->second, other->second);
    }
    first = end;
  }
}

void sort_nodes(std::vector<StackNode>& nodes) {
  const auto key = [](const StackNode& node) {
    const NamedFrame none;
    const NamedFrame& first = node.frames.empty() ? none : node.frames.front();
    return std::tuple(!node.thread.empty(), node.cut, ~node.ranks.size(), ~node.threads, node.thread, first.function,
                      first.module, first.file, first.line);
  };
  std::sort(nodes.begin(), nodes.end(), [&](const StackNode& a, const StackNode& b) { return key(a) < key(b); });
}

StackNode finished(Growing* node) {
  join_lines(*node);
  StackNode result;
  result.ranks.assign(node->ranks.begin(), node->ranks.end());
  result.threads = node->threads;
  result.frames.push_back(node->frame);
  while (node->children.size() == 1 && node->ending_threads == 0) {
    node = &node->children.begin()->second;
    join_lines(*node);
    result.frames.push_back(node->frame);
  }
  for (auto& [place, child] : node->children) result.children.push_back(finished(&child));
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

NamedFrame place_of(const RankStack& stack) {
  if (const NamedFrame* const frame = program_line(stack.frames)) return *frame;
  const std::string program = stack.cut || stack.frames.empty() ? "" : stack.frames.front().module;
  const auto own = std::find_if(stack.frames.rbegin(), stack.frames.rend(),
                                [&](const NamedFrame& frame) { return frame.module == program; });
  return program.empty() || own == stack.frames.rend() ? NamedFrame{} : *own;
}

std::vector<StackNode> merge_stacks(const std::vector<RankStack>& stacks) {
  std::map<std::pair<std::string, bool>, Growing> tops;  // each above the roots of one kind
  for (const RankStack& stack : stacks) {
    Growing* at = &tops[{stack.thread, stack.cut}];
    for (const NamedFrame& frame : stack.frames) {
      Growing& next = at->children[{frame.function, frame.module, frame.file, frame.line}];
      next.frame = frame;
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
  for (auto& [kind, top] : tops) {
    join_lines(top);
    for (auto& [place, child] : top.children) {
      StackNode& root = roots.emplace_back(finished(&child));
      std::tie(root.thread, root.cut) = kind;
    }
  }
  sort_nodes(roots);
  return roots;
}

}  // namespace bestride::inline telemetry
