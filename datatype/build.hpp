// SPDX-License-Identifier: Apache-2.0
#pragma once
// The algebra that builds layouts: place, concatenate, repeat. Every operation returns the canonical form (rules in
// datatype/README.md) of the byte sequence it describes, in order, 64-bit and overflow-checked.
#include <cstdint>
#include <optional>
#include <span>

#include "datatype/layout.hpp"

namespace bestride {

/// A node placed at an offset: the value the builders work on. node == nullptr: no bytes.
struct Placed {
  std::int64_t offset = 0;
  NodePtr node;
};

/// Every builder returns nullopt when an offset or size leaves the 62-bit range: such a type is left to MPI.
using Built = std::optional<Placed>;

Built make_block(std::int64_t offset, std::int64_t length);
/// `count` copies of `body`, copy i moved by i * stride bytes. count <= 0: empty.
Built make_repeat(const Placed& body, std::int64_t count, std::int64_t stride);
/// The parts one after the other, in order. Empty ones are dropped; neighbours merge; regular runs are rolled into loops.
Built make_sequence(std::span<const Placed> parts);
/// Blocks (offset, length) in order; a zero length is dropped. What is regular becomes loops.
Built make_blocks(std::span<const std::int64_t> offsets, std::span<const std::int64_t> lengths);

/// Packed bytes of the innermost constructor that leaves gaps, 0 if none does, on the way up: `inner` is that of the part `made` is of.
inline std::int64_t innermost_with_gaps(std::int64_t inner, const Placed& made) noexcept {
  return inner != 0 || !made.node || made.node->kind == Node::Kind::block ? inner : made.node->size;
}

/// The one Layout of this byte sequence. Thread-safe; takes one lock.
LayoutPtr intern(const Placed& placed);

/// How many layouts are alive in the intern table (for tests of leaks).
std::size_t interned_layouts();

/// Calls visit(offset, length) for every contiguous run in packing order; offsets from the buffer address. Stops early when
/// visit returns false. Cost: one call per run. For tests, printing and reference code, not for moving data.
template <class Visit>
bool for_each_block(const Node& node, std::int64_t offset, Visit&& visit) {
  switch (node.kind) {
    case Node::Kind::block:
      return visit(offset, node.size);
    case Node::Kind::loop:
      for (std::int64_t i = 0; i < node.count; ++i)
        if (!for_each_block(*node.body, offset + i * node.stride, visit)) return false;
      return true;
    case Node::Kind::sequence:
      for (const Item& item : node.items)
        if (!for_each_block(*item.node, offset + item.offset, visit)) return false;
      return true;
    case Node::Kind::list:
      for (std::size_t i = 0; i < node.offsets.size(); ++i)
        if (!visit(offset + node.offsets[i], node.lengths.empty() ? node.block_length : node.lengths[i])) return false;
      return true;
  }
  return true;
}

}  // namespace bestride
