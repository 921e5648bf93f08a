// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layout: which bytes an MPI datatype touches, in the order of its type map, as the shortest loop nest over contiguous blocks.
//
// The order of the type map is kept: packing a Layout writes its bytes in exactly the order MPI_Pack does. Equal byte sequences
// are one object: Layouts are interned by a content fingerprint that does not depend on the spelling (how loops are nested or
// blocks are split), so plans, kernels and model entries made for one spelling serve all.
// Alternative that lost: interning by structure after rewriting to normal form. Normal forms of type trees are NP-hard in
// general (Gropp, Hoefler, Thakur, Traff, EuroMPI'11), so any rewriting misses some spellings; the fingerprint misses none.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bestride {

/// 61-bit polynomial hashes of the byte offsets sequence, at two independent points (see datatype/fingerprint.hpp).
struct Fingerprint {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  bool operator==(const Fingerprint&) const = default;
};

struct Node;
using NodePtr = std::shared_ptr<const Node>;

/// One child of a sequence: `node` placed so that its first packed byte lies at `offset` (bytes, relative to the parent's first).
struct Item {
  std::int64_t offset = 0;
  NodePtr node;
};

/// A piece of a layout. Every node is normalised: its first packed byte is at offset 0. All byte counts are > 0.
struct Node {
  enum class Kind : std::uint8_t {
    block,     ///< `size` contiguous bytes
    loop,      ///< `count` (>= 2) copies of `body`, copy i at i * stride; stride may be negative, zero or smaller than the body
    sequence,  ///< `items` (>= 2), in order
    list,      ///< blocks without a regular stride (>= 2), block i at offsets[i], of length block_length or lengths[i]
  };
  Kind kind = Kind::block;
  std::int64_t size = 0;    ///< packed bytes
  std::int64_t low = 0;     ///< lowest byte touched, relative to the first packed byte (<= 0)
  std::int64_t high = 0;    ///< one past the highest byte touched
  std::int64_t blocks = 1;  ///< contiguous runs moved (as written: neighbours that touch across a loop turn count apart)
  Fingerprint content;
  std::int64_t count = 0;   // loop
  std::int64_t stride = 0;  // loop, bytes
  NodePtr body;             // loop
  std::vector<Item> items;  // sequence
  std::vector<std::int64_t> offsets;  // list; offsets[0] == 0
  std::vector<std::int64_t> lengths;  // list; empty when all blocks are block_length bytes
  std::int64_t block_length = 0;      // list, when lengths is empty
};

/// An immutable, interned byte layout. Compare by address: equal byte sequences (offsets included) have equal addresses while
/// one of them is alive. Thread-safe.
class Layout {
 public:
  std::int64_t size() const noexcept { return root_ ? root_->size : 0; }          ///< packed bytes; 0: touches nothing
  std::int64_t offset() const noexcept { return offset_; }                        ///< of the first packed byte, from the buffer address
  std::int64_t low() const noexcept { return root_ ? offset_ + root_->low : 0; }   ///< true lower bound
  std::int64_t high() const noexcept { return root_ ? offset_ + root_->high : 0; } ///< one past the highest byte touched
  std::int64_t blocks() const noexcept { return root_ ? root_->blocks : 0; }
  bool contiguous() const noexcept { return !root_ || root_->kind == Node::Kind::block; }
  /// Null for the empty layout.
  const Node* root() const noexcept { return root_.get(); }
  const NodePtr& root_pointer() const noexcept { return root_; }

  /// One readable line, e.g. "+64 | 16 x 8192 | 32 x 256 | 8 B": outer to inner, "count x stride", then the block.
  std::string text() const;

  Layout(std::int64_t offset, NodePtr root) : offset_(offset), root_(std::move(root)) {}

 private:
  std::int64_t offset_ = 0;
  NodePtr root_;
};
using LayoutPtr = std::shared_ptr<const Layout>;

}  // namespace bestride
