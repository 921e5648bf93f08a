// SPDX-License-Identifier: Apache-2.0
#include "datatype/node.hpp"

#include <algorithm>
#include <utility>

#include "datatype/fingerprint.hpp"

namespace bestride::inline datatype {

NodePtr block_node(std::int64_t length) {
  if (length > offset_limit) return nullptr;
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::block;
  node->size = node->high = length;
  node->content = block_fingerprint(length);
  return node;
}

NodePtr loop_node(NodePtr body, std::int64_t count, std::int64_t stride) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::loop;
  std::int64_t last = 0;
  if (!product(count - 1, stride, &last) || !product(count, body->size, &node->size) ||
      !product(count, body->blocks, &node->blocks) || !sum(body->low, std::min<std::int64_t>(last, 0), &node->low) ||
      !sum(body->high, std::max<std::int64_t>(last, 0), &node->high))
    return nullptr;
  node->content = repeated(body->content, body->size, count, stride);
  node->count = count;
  node->stride = stride;
  node->body = std::move(body);
  return node;
}

NodePtr sequence_node(std::vector<Item> items) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::sequence;
  node->blocks = 0;
  FingerprintSequence content;
  bool first = true;
  for (const Item& item : items) {
    std::int64_t low = 0, high = 0;
    if (!sum(node->size, item.node->size, &node->size) || !sum(node->blocks, item.node->blocks, &node->blocks) ||
        !sum(item.offset, item.node->low, &low) || !sum(item.offset, item.node->high, &high))
      return nullptr;
    node->low = first ? low : std::min(node->low, low);
    node->high = first ? high : std::max(node->high, high);
    content.append(moved(item.node->content, item.node->size, item.offset), item.node->size);
    first = false;
  }
  node->content = content.value();
  node->items = std::move(items);
  return node;
}

NodePtr list_node(std::vector<std::int64_t> offsets, std::vector<std::int64_t> lengths, std::int64_t block_length) {
  auto node = std::make_shared<Node>();
  node->kind = Node::Kind::list;
  node->blocks = static_cast<std::int64_t>(offsets.size());
  node->low = 0;
  node->high = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::int64_t length = lengths.empty() ? block_length : lengths[i];
    std::int64_t high = 0;
    if (!sum(offsets[i], length, &high) || !sum(node->size, length, &node->size)) return nullptr;
    node->low = std::min(node->low, offsets[i]);
    node->high = std::max(node->high, high);
  }
  node->content = list_fingerprint(offsets, lengths, block_length);
  node->offsets = std::move(offsets);
  node->lengths = std::move(lengths);
  node->block_length = block_length;
  return node;
}

}  // namespace bestride::inline datatype
