// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/host/shape.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace bestride::inline perfmodel {
namespace {

constexpr std::size_t list_sample = 64;
/// A loop body of at most this many blocks is a record; a longer one is a list that repeats.
constexpr std::int64_t record_blocks = 16;
/// If the parts of a sequence have at least this many blocks on average, the sequence costs as much as its parts: six
/// faces in a struct are loops, not a list.
constexpr std::int64_t blocks_of_a_nest = 16;

/// The steps from block to block: their number, their lengths, and where the last block begins.
struct Walk {
  double log_sum = 0;  ///< sum of log2(jump) over all steps
  double steps = 0;
  std::int64_t last = 0;

  void step(std::int64_t distance, double times) noexcept {
    log_sum += times * std::log2(static_cast<double>(std::max<std::int64_t>(1, std::llabs(distance))));
    steps += times;
  }
};

Walk walk(const Node& node) noexcept {
  Walk result;
  switch (node.kind) {
    case Node::Kind::block: break;
    case Node::Kind::loop: {
      const Walk body = walk(*node.body);
      const double turns = static_cast<double>(node.count);
      result.log_sum = body.log_sum * turns;
      result.steps = body.steps * turns;
      result.step(node.stride - body.last, turns - 1);
      result.last = (node.count - 1) * node.stride + body.last;
      break;
    }
    case Node::Kind::sequence: {
      bool first = true;
      for (const Item& item : node.items) {
        const Walk part = walk(*item.node);
        if (!first) result.step(item.offset - result.last, 1);
        result.log_sum += part.log_sum;
        result.steps += part.steps;
        result.last = item.offset + part.last;
        first = false;
      }
      break;
    }
    case Node::Kind::list: {
      const std::size_t sampled = std::min(list_sample, node.offsets.size() - 1);
      const double times = static_cast<double>(node.offsets.size() - 1) / static_cast<double>(sampled);
      const std::size_t apart = (node.offsets.size() - 1) / sampled;
      for (std::size_t k = 0; k < sampled; ++k)
        result.step(node.offsets[k * apart + 1] - node.offsets[k * apart], times);
      result.last = node.offsets.back();
      break;
    }
  }
  return result;
}

/// Follows the loops to the innermost one; in a sequence of loops, into its largest part.
void classify(const Node& node, Shape* shape) noexcept {
  switch (node.kind) {
    case Node::Kind::block:
      shape->kind = shape->loops == 0   ? Shape::Class::contiguous
                    : shape->loops == 1 ? Shape::Class::vector
                                        : Shape::Class::nest;
      return;
    case Node::Kind::loop:
      ++shape->loops;
      shape->inner_count = node.count;
      classify(*node.body, shape);
      return;
    case Node::Kind::sequence:
      if (node.blocks / static_cast<std::int64_t>(node.items.size()) >= blocks_of_a_nest) {
        const auto larger = [](const Item& a, const Item& b) { return a.node->size < b.node->size; };
        const Node& largest = *std::max_element(node.items.begin(), node.items.end(), larger)->node;
        classify(largest, shape);
        const bool alone = largest.size > node.size - node.size / 4;
        if (!alone && shape->kind == Shape::Class::vector) shape->kind = Shape::Class::nest;
        return;
      }
      [[fallthrough]];
    case Node::Kind::list:
      shape->kind = shape->loops > 0 && node.blocks <= record_blocks ? Shape::Class::record : Shape::Class::list;
      return;
  }
}

}  // namespace

Shape Shape::of(const Layout& layout, const TypeRepresentation& spelling) noexcept {
  Shape shape;
  shape.leaf = spelling.leaf;
  shape.bytes = layout.size();
  shape.blocks = layout.blocks();
  shape.block_bytes = shape.blocks > 0 ? std::max<std::int64_t>(1, shape.bytes / shape.blocks) : 1;
  shape.footprint = layout.high() - layout.low();
  shape.unit_bytes = spelling.unit_bytes > 0 ? spelling.unit_bytes : shape.bytes;
  const Node* root = layout.root();
  if (!root) return shape;
  classify(*root, &shape);
  if (root->kind == Node::Kind::loop) shape.outer_count = root->count;
  const Walk steps = walk(*root);
  if (steps.steps > 0) shape.jump = std::llround(std::exp2(std::min(steps.log_sum / steps.steps, 61.0)));
  return shape;
}

}  // namespace bestride::inline perfmodel
