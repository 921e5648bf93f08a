// SPDX-License-Identifier: Apache-2.0
// Two rules decide nearly all shapes; the rest is decided by checking every byte.
#include "kernels/cuda/device/overlap.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "datatype/build.hpp"

namespace bestride::cuda {
namespace {

/// Maximum byte range for which a bitmap (2 MiB) is used; it takes milliseconds, once per layout.
constexpr std::int64_t bitmap_range = std::int64_t{1} << 24;
constexpr std::int64_t sorted_blocks = std::int64_t{1} << 16;

struct Run {
  std::int64_t offset;
  std::int64_t end;
};

bool apart(std::vector<Run> runs) {
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.offset < b.offset; });
  for (std::size_t i = 1; i < runs.size(); ++i)
    if (runs[i].offset < runs[i - 1].end) return false;
  return true;
}

bool surely_apart(const Node& node);

/// True if this rule proves that a loop nest has no overlap: in ascending order of strides, each stride is at least the
/// range that the body and the loops of smaller stride cover. Sorting by stride also handles a transpose, whose outer
/// loop has a stride of one block.
bool nest_apart(const Node& node) {
  std::vector<std::pair<std::int64_t, std::int64_t>> loops;  // stride, count
  const Node* body = &node;
  for (; body->kind == Node::Kind::loop; body = body->body.get())
    loops.emplace_back(std::abs(body->stride), body->count);
  if (!surely_apart(*body)) return false;
  std::sort(loops.begin(), loops.end());
  std::int64_t covered = body->high - body->low;
  for (const auto& [stride, count] : loops) {
    if (stride < covered) return false;
    covered += (count - 1) * stride;
  }
  return true;
}

bool surely_apart(const Node& node) {
  switch (node.kind) {
    case Node::Kind::block: return true;
    case Node::Kind::loop: return nest_apart(node);
    case Node::Kind::sequence: {
      std::vector<Run> ranges;
      for (const Item& item : node.items) {
        if (!surely_apart(*item.node)) return false;
        ranges.push_back({item.offset + item.node->low, item.offset + item.node->high});
      }
      return apart(std::move(ranges));
    }
    case Node::Kind::list: {
      std::vector<Run> blocks;
      for (std::size_t i = 0; i < node.offsets.size(); ++i)
        blocks.push_back(
            {node.offsets[i], node.offsets[i] + (node.lengths.empty() ? node.block_length : node.lengths[i])});
      return apart(std::move(blocks));
    }
  }
  return false;
}

bool apart_by_looking(const Node& node) {
  const std::int64_t range = node.high - node.low;
  if (node.size > range) return false;
  if (range <= bitmap_range) {
    std::vector<bool> named(static_cast<std::size_t>(range));
    return for_each_block(node, -node.low, [&](std::int64_t offset, std::int64_t length) {
      for (std::int64_t i = offset; i < offset + length; ++i) {
        if (named[static_cast<std::size_t>(i)]) return false;
        named[static_cast<std::size_t>(i)] = true;
      }
      return true;
    });
  }
  if (node.blocks > sorted_blocks) return false;
  std::vector<Run> blocks;
  for_each_block(node, 0, [&](std::int64_t offset, std::int64_t length) {
    blocks.push_back({offset, offset + length});
    return true;
  });
  return apart(std::move(blocks));
}

}  // namespace

bool may_overlap(const Layout& layout) {
  return layout.root() && !surely_apart(*layout.root()) && !apart_by_looking(*layout.root());
}

}  // namespace bestride::cuda
