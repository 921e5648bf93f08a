// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <utility>

#include "telemetry/report/quantity.hpp"
#include "telemetry/stacks/stack_tree.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr std::size_t most_name_columns = 60;
constexpr std::size_t most_label_columns = 32;            // labels beyond it do not move the others
constexpr std::size_t first_frames = 4, last_frames = 5;  // of a long chain

std::string place_text(const NamedFrame& frame) {
  if (frame.file.empty()) return "";
  return " (" + frame.file.substr(frame.file.rfind('/') + 1) + (frame.line ? ":" + std::to_string(frame.line) : "") +
         ")";
}

bool calls_a_library(const NamedFrame& frame, const NamedFrame& next) {
  return next.file.empty() || (is_program_source(frame) && !is_program_source(next));
}

/// "main > solve (solver.f90:88) > MPI_Allreduce". Source lines: of the last frame, of those that call MPI or a
/// library, and of the first one if `with_first_line`.
std::string chain_text(const std::vector<NamedFrame>& frames, bool with_first_line) {
  std::vector<std::string> words;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    std::size_t same = 1;
    while (i + 1 < frames.size() && frames[i + 1].function == frames[i].function) ++i, ++same;
    const NamedFrame& frame = frames[i];
    std::string word = fitted(frame.function, most_name_columns);
    if (same > 1) word += " x" + std::to_string(same);
    const bool last = i + 1 == frames.size();
    if (!is_mpi_function(frame.function) &&
        (last || calls_a_library(frame, frames[i + 1]) || (with_first_line && words.empty())))
      word += place_text(frame);
    words.push_back(word);
  }
  if (words.size() > first_frames + last_frames + 1) {
    const std::size_t left_out = words.size() - first_frames - last_frames;
    words[first_frames] = "... " + std::to_string(left_out) + " more ...";
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(first_frames) + 1,
                words.end() - static_cast<std::ptrdiff_t>(last_frames));
  }
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " > ") + word;
  return text;
}

/// True if a neighbor of the node is in the same function, at another line.
bool differs_by_line(const StackNode& node, const std::vector<StackNode>& neighbors) {
  return std::any_of(neighbors.begin(), neighbors.end(), [&](const StackNode& other) {
    return &other != &node && !other.frames.empty() && !node.frames.empty() &&
           other.frames.front().function == node.frames.front().function;
  });
}

std::string content(const StackNode& node, const std::vector<StackNode>& neighbors) {
  if (node.kind == StackNode::Kind::itself)
    return fitted(node.place.function, most_name_columns) + " itself" + place_text(node.place);
  std::string text = node.thread.empty() ? "" : "[" + fitted(node.thread, 20) + "] ";
  if (node.cut) text += "(outer frames missing) ... > ";
  return text + chain_text(node.frames, differs_by_line(node, neighbors));
}

std::size_t count(const std::vector<StackNode>& nodes) {
  std::size_t result = nodes.size();
  for (const StackNode& node : nodes) result += count(node.children);
  return result;
}

class Tree {
 public:
  explicit Tree(const TreeText& options) : options_(options) {}

  std::string text(const std::vector<StackNode>& roots) {
    const std::size_t all = count(roots);
    const std::size_t most = std::max<std::size_t>(options_.most_lines, 1);
    choose(roots, all > most ? most - 1 : all);
    print(roots, 0);
    if (const std::size_t left_out = all - chosen_.size())
      text_ += options_.indent + (chosen_.empty() ? "" : "and ") + std::to_string(left_out) +
               (chosen_.empty() ? "" : " more") + (left_out == 1 ? " part" : " parts") + " of the tree\n";
    return text_;
  }

 private:
  /// Chooses outer nodes first; from a level that does not fit, the first nodes.
  void choose(const std::vector<StackNode>& roots, std::size_t most) {
    std::vector<const StackNode*> level, next;
    for (const StackNode& root : roots) level.push_back(&root);
    for (; !level.empty(); level = std::exchange(next, {}))
      for (const StackNode* const node : level) {
        if (chosen_.size() == most) return;
        chosen_.insert(node);
        for (const StackNode& child : node->children) next.push_back(&child);
      }
  }

  std::string label(const StackNode& node) const {
    std::string text = options_.ranks           ? options_.ranks(node.ranks)
                       : node.ranks.size() == 1 ? "rank " + std::to_string(node.ranks[0])
                                                : std::to_string(node.ranks.size()) + " ranks";
    if (node.threads > node.ranks.size()) text += ", " + std::to_string(node.threads) + " threads";
    return text;
  }

  void print(const std::vector<StackNode>& nodes, std::size_t depth) {
    std::size_t width = 0;
    for (const StackNode& node : nodes)
      if (chosen_.contains(&node))
        if (const std::size_t own = label(node).size(); own <= most_label_columns) width = std::max(width, own);
    for (const StackNode& node : nodes) {
      if (!chosen_.contains(&node)) continue;
      std::string text = label(node);
      if (text.size() < width) text.resize(width, ' ');
      text_ += options_.indent + std::string(2 * depth, ' ') + text + "  " + content(node, nodes) + "\n";
      print(node.children, depth + 1);
    }
  }

  const TreeText& options_;
  std::set<const StackNode*> chosen_;
  std::string text_;
};

}  // namespace

std::string frame_text(const NamedFrame& frame) {
  return fitted(frame.function, most_name_columns) + place_text(frame);
}

std::string tree_text(const std::vector<StackNode>& roots, const TreeText& options) {
  return Tree(options).text(roots);
}

}  // namespace bestride::inline telemetry
