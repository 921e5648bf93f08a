// SPDX-License-Identifier: Apache-2.0
#pragma once
// The operations that build layouts: place, concatenate, repeat. Each returns the canonical form (rules in
// datatype/README.md) of the byte sequence that it describes, in order. Arithmetic is 64-bit and checked for overflow.
#include <cstdint>
#include <optional>
#include <span>

#include "datatype/layout.hpp"

namespace bestride::inline datatype {

/// A node placed at an offset; the builders take and return it. node == nullptr: no bytes.
struct Placed {
  std::int64_t offset = 0;
  NodePtr node;
};

/// Every builder returns nullopt if an offset or a size leaves the 62-bit range. Such a type is left to MPI.
using Built = std::optional<Placed>;

Built make_block(std::int64_t offset, std::int64_t length);
/// `count` copies of `body`; copy i is moved by i * stride bytes. count <= 0: empty.
Built make_repeat(const Placed& body, std::int64_t count, std::int64_t stride);
/// The parts one after the other, in order. Empty parts are dropped, adjacent blocks are merged, and regular runs
/// become loops.
Built make_sequence(std::span<const Placed> parts);
/// Blocks (offset, length) in order. Blocks of length zero are dropped. Regular runs become loops.
Built make_blocks(std::span<const std::int64_t> offsets, std::span<const std::int64_t> lengths);

/// Packed bytes of the innermost constructor that leaves gaps; 0 if none does. Called at each construction step: `made`
/// is the new type, `inner` is the value for the part that it is built from.
inline std::int64_t innermost_with_gaps(std::int64_t inner, const Placed& made) noexcept {
  return inner != 0 || !made.node || made.node->kind == Node::Kind::block ? inner : made.node->size;
}

/// The interned Layout of this byte sequence: equal sequences give the same object. Thread-safe; takes one lock.
LayoutPtr intern(const Placed& placed);

/// Number of live layouts in the intern table, for leak tests.
std::size_t interned_layouts();

/// Calls visit(offset, length) for every contiguous run in packing order; offsets are relative to the buffer address.
/// Stops if visit returns false. Cost: one call for each run. For tests, printing and reference code, not for moving
/// data.
template <class Visit>
bool for_each_block(const Node& node, std::int64_t offset, Visit&& visit) {
  switch (node.kind) {
    case Node::Kind::block: return visit(offset, node.size);
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

}  // namespace bestride::inline datatype
