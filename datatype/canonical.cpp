// SPDX-License-Identifier: Apache-2.0
// The rules of the canonical form. No rule changes the order of the bytes.
#include <algorithm>
#include <utility>

#include "datatype/build.hpp"
#include "datatype/node.hpp"
#include "datatype/period.hpp"

namespace bestride::inline datatype {
namespace {

/// Up to this many irregular blocks are kept as a sequence (the fields of a record); more become a block list.
constexpr std::size_t few_blocks = 8;

bool is_block(const Node& node) noexcept { return node.kind == Node::Kind::block; }

Built placed(std::int64_t offset, NodePtr node) {
  if (!node) return std::nullopt;
  std::int64_t edge = 0;
  if (!sum(offset, node->low, &edge) || !sum(offset, node->high, &edge)) return std::nullopt;
  return Placed{offset, std::move(node)};
}

/// Appends a piece. Merges it with the previous piece where possible: touching blocks, or a loop and one more iteration
/// of it.
bool append(std::vector<Item>& items, Item next) {
  while (!items.empty()) {
    Item& last = items.back();
    const Node& a = *last.node;
    const Node& b = *next.node;
    if (is_block(a) && is_block(b) && last.offset + a.size == next.offset) {
      next = {last.offset, block_node(a.size + b.size)};
    } else if (a.kind == Node::Kind::loop && same_content(*a.body, b) &&
               last.offset + a.count * a.stride == next.offset) {
      next = {last.offset, loop_node(a.body, a.count + 1, a.stride)};
    } else if (b.kind == Node::Kind::loop && same_content(a, *b.body) && last.offset + b.stride == next.offset) {
      next = {last.offset, loop_node(b.body, b.count + 1, b.stride)};
    } else if (a.kind == Node::Kind::loop && b.kind == Node::Kind::loop && a.stride == b.stride &&
               same_content(*a.body, *b.body) && last.offset + a.count * a.stride == next.offset) {
      next = {last.offset, loop_node(a.body, a.count + b.count, a.stride)};
    } else {
      break;
    }
    if (!next.node) return false;
    items.pop_back();
  }
  items.push_back(std::move(next));
  return true;
}

/// Pieces without repetition: one piece, a short sequence, or a block list.
Built irregular(std::vector<Item> items) {
  const std::int64_t origin = items.front().offset;
  if (items.size() == 1) return placed(origin, items.front().node);
  const bool only_blocks =
      std::all_of(items.begin(), items.end(), [](const Item& item) { return is_block(*item.node); });
  if (only_blocks && items.size() > few_blocks) {
    std::vector<std::int64_t> offsets, lengths;
    offsets.reserve(items.size());
    lengths.reserve(items.size());
    for (const Item& item : items) offsets.push_back(item.offset - origin), lengths.push_back(item.node->size);
    const std::int64_t length = lengths.front();
    if (std::all_of(lengths.begin(), lengths.end(), [&](std::int64_t other) { return other == length; }))
      lengths.clear();
    return placed(origin, list_node(std::move(offsets), std::move(lengths), length));
  }
  for (Item& item : items) item.offset -= origin;
  return placed(origin, sequence_node(std::move(items)));
}

/// Turns regular runs into loops. `items` are already merged.
Built roll(std::vector<Item> items) {
  if (items.size() < 2) return irregular(std::move(items));
  const Period found = find_period(
      items.size(), [&](std::size_t i, std::size_t j) { return same_content(*items[i].node, *items[j].node); },
      [&](std::size_t i) { return items[i].offset; });
  if (found.turns < 2) return irregular(std::move(items));
  const std::int64_t stride = items[found.period].offset - items[0].offset;
  const auto turn_end = items.begin() + static_cast<std::ptrdiff_t>(found.period);
  const Built body = roll(std::vector<Item>(items.begin(), turn_end));
  if (!body) return std::nullopt;
  Built loop = make_repeat(*body, static_cast<std::int64_t>(found.turns), stride);
  const std::size_t rolled = found.period * found.turns;
  if (!loop || rolled == items.size()) return loop;
  std::vector<Item> parts{{loop->offset, loop->node}};
  for (std::size_t i = rolled; i < items.size(); ++i)
    if (!append(parts, items[i])) return std::nullopt;
  return irregular(std::move(parts));
}

/// Appends a node placed at `offset`: the items of a sequence, else the node itself.
bool append_pieces(std::vector<Item>& items, std::int64_t offset, const NodePtr& node) {
  if (node->kind == Node::Kind::sequence) {
    for (const Item& item : node->items)
      if (!append(items, {offset + item.offset, item.node})) return false;
    return true;
  }
  return append(items, {offset, node});
}

/// A loop in which the last block of the body touches the first block of the next iteration. Each such pair is merged:
///   b1 m b2 | b1 m b2 | b1 m b2   becomes   b1 | m (b2 b1) | m (b2 b1) | m b2.
Built repeat_touching(const Placed& body, std::int64_t count, std::int64_t stride) {
  const std::vector<Item>& items = body.node->items;
  const Item& last = items.back();
  std::vector<Item> turn(items.begin() + 1, items.end() - 1);
  turn.push_back({last.offset, block_node(last.node->size + items.front().node->size)});
  if (!turn.back().node) return std::nullopt;
  const Built turn_body = roll(std::move(turn));
  if (!turn_body) return std::nullopt;
  const Built middle = make_repeat({turn_body->offset, turn_body->node}, count - 1, stride);
  std::int64_t shift = 0;
  if (!middle || !product(count - 1, stride, &shift)) return std::nullopt;
  std::vector<Item> all{{0, items.front().node}};
  bool fine = append_pieces(all, middle->offset, middle->node);
  for (std::size_t i = 1; fine && i < items.size(); ++i) fine = append(all, {shift + items[i].offset, items[i].node});
  if (!fine) return std::nullopt;
  for (Item& item : all) item.offset += body.offset;
  return irregular(std::move(all));
}

}  // namespace

Built make_block(std::int64_t offset, std::int64_t length) {
  if (length <= 0) return Placed{};
  return placed(offset, block_node(length));
}

Built make_repeat(const Placed& body, std::int64_t count, std::int64_t stride) {
  if (!body.node || count <= 0) return Placed{};
  if (count == 1) return placed(body.offset, body.node);
  const Node& node = *body.node;
  std::int64_t total = 0;
  if (!product(count, node.size, &total) || !product(count, stride, &total)) return std::nullopt;
  if (is_block(node) && stride == node.size) return placed(body.offset, block_node(total));
  if (node.kind == Node::Kind::loop) {
    std::int64_t span = 0, turns = 0;
    if (product(node.count, node.stride, &span) && span == stride) {
      if (!product(node.count, count, &turns)) return std::nullopt;
      return placed(body.offset, loop_node(node.body, turns, node.stride));
    }
  }
  if (node.kind == Node::Kind::sequence && is_block(*node.items.front().node) && is_block(*node.items.back().node) &&
      node.items.back().offset + node.items.back().node->size == stride)
    return repeat_touching(body, count, stride);
  return placed(body.offset, loop_node(body.node, count, stride));
}

Built make_sequence(std::span<const Placed> parts) {
  std::vector<Item> items;
  items.reserve(parts.size());
  for (const Placed& part : parts)
    if (part.node && (!placed(part.offset, part.node) || !append_pieces(items, part.offset, part.node)))
      return std::nullopt;
  if (items.empty()) return Placed{};
  return roll(std::move(items));
}

Built make_blocks(std::span<const std::int64_t> offsets, std::span<const std::int64_t> lengths) {
  std::vector<std::int64_t> at, length;
  at.reserve(offsets.size());
  length.reserve(offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (lengths[i] <= 0) continue;
    std::int64_t end = 0;
    if (!sum(offsets[i], lengths[i], &end) || !sum(offsets[i], 0, &end)) return std::nullopt;
    if (!at.empty() && at.back() + length.back() == offsets[i])
      length.back() += lengths[i];
    else
      at.push_back(offsets[i]), length.push_back(lengths[i]);
  }
  if (at.empty()) return Placed{};
  const std::size_t n = at.size();
  const Period found = find_period(
      n, [&](std::size_t i, std::size_t j) { return length[i] == length[j]; }, [&](std::size_t i) { return at[i]; });
  const bool uniform =
      std::all_of(length.begin(), length.end(), [&](std::int64_t other) { return other == length[0]; });
  if (n == 1) return make_block(at[0], length[0]);
  if (found.turns >= 2) {
    const std::size_t rolled = found.period * found.turns;
    const Built body = make_blocks(std::span(at).first(found.period), std::span(length).first(found.period));
    if (!body) return std::nullopt;
    const Built loop = make_repeat(*body, static_cast<std::int64_t>(found.turns), at[found.period] - at[0]);
    if (!loop || rolled == n) return loop;
    const Built rest = make_blocks(std::span(at).subspan(rolled), std::span(length).subspan(rolled));
    if (!rest) return std::nullopt;
    std::vector<Item> parts;
    if (!append_pieces(parts, loop->offset, loop->node) || !append_pieces(parts, rest->offset, rest->node))
      return std::nullopt;
    return irregular(std::move(parts));
  }
  if (n <= few_blocks) {
    std::vector<Item> items;
    for (std::size_t i = 0; i < n; ++i) {
      items.push_back({at[i], block_node(length[i])});
      if (!items.back().node) return std::nullopt;
    }
    return irregular(std::move(items));
  }
  const std::int64_t origin = at[0];
  const std::int64_t block_length = length[0];
  for (std::int64_t& offset : at) offset -= origin;
  if (uniform) length.clear();
  return placed(origin, list_node(std::move(at), std::move(length), block_length));
}

}  // namespace bestride::inline datatype
