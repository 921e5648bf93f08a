// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layout: the bytes that an MPI datatype touches, in the order of its type map, as the shortest loop nest over
// contiguous blocks.
//
// The order of the type map is kept: packing a Layout writes its bytes in the same order as MPI_Pack. Equal byte
// sequences share one object: Layouts are interned by a fingerprint of their content that does not depend on how the
// datatype was constructed (how loops are nested or blocks are split). Plans, kernels and model entries made for one
// datatype therefore serve all equivalent ones. Alternative considered: interning by structure after rewriting to a
// normal form. Normal forms of type trees are NP-hard in general (Gropp, Hoefler, Thakur, Traff, EuroMPI'11), so a
// practical rewriting does not recognize all equivalent types.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace bestride::inline datatype {

/// 61-bit polynomial hashes of the sequence of byte offsets, at two independent points (see datatype/fingerprint.hpp).
struct Fingerprint {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  bool operator==(const Fingerprint&) const = default;
};

struct Node;
using NodePtr = std::shared_ptr<const Node>;

/// A child of a sequence: `node`, placed so that its first packed byte is at `offset` (bytes, relative to the first
/// packed byte of the parent).
struct Item {
  std::int64_t offset = 0;
  NodePtr node;
};

/// A part of a layout. Every node is normalized: its first packed byte is at offset 0. All byte counts are > 0.
struct Node {
  enum class Kind : std::uint8_t {
    block,  ///< `size` contiguous bytes
    loop,   ///< `count` (>= 2) copies of `body`, copy i at i * stride; stride may be negative, zero or smaller than the
            ///< body
    sequence,  ///< `items` (>= 2), in order
    list,      ///< blocks without a regular stride (>= 2), block i at offsets[i], of length block_length or lengths[i]
  };
  Kind kind = Kind::block;
  std::int64_t size = 0;    ///< packed bytes
  std::int64_t low = 0;     ///< lowest byte touched, relative to the first packed byte (<= 0)
  std::int64_t high = 0;    ///< one past the highest byte touched
  std::int64_t blocks = 1;  ///< contiguous runs; runs of adjacent loop iterations that touch are counted separately
  Fingerprint content;
  std::int64_t count = 0;             // loop
  std::int64_t stride = 0;            // loop, bytes
  NodePtr body;                       // loop
  std::vector<Item> items;            // sequence
  std::vector<std::int64_t> offsets;  // list; offsets[0] == 0
  std::vector<std::int64_t> lengths;  // list; empty when all blocks are block_length bytes
  std::int64_t block_length = 0;      // list, when lengths is empty
};

/// An immutable, interned byte layout. Compare by address: while a layout is alive, an equal byte sequence (offsets
/// included) has the same address. Thread-safe.
class Layout {
 public:
  std::int64_t size() const noexcept { return root_ ? root_->size : 0; }  ///< packed bytes; 0 for the empty layout
  std::int64_t offset() const noexcept {
    return offset_;
  }  ///< of the first packed byte, relative to the buffer
     ///< address
  std::int64_t low() const noexcept { return root_ ? offset_ + root_->low : 0; }  ///< true lower bound
  std::int64_t high() const noexcept {
    return root_ ? offset_ + root_->high : 0;
  }  ///< one past the highest byte touched
  std::int64_t blocks() const noexcept { return root_ ? root_->blocks : 0; }
  bool contiguous() const noexcept { return !root_ || root_->kind == Node::Kind::block; }
  /// Null for the empty layout.
  const Node* root() const noexcept { return root_.get(); }
  const NodePtr& root_pointer() const noexcept { return root_; }

  /// One readable line, for example "+64 | 16 x 16384 | 32 x 256 | 8 B": from outer to inner, "count x stride", then
  /// the block.
  std::string text() const;

  Layout(std::int64_t offset, NodePtr root) : offset_(offset), root_(std::move(root)) {}

 private:
  std::int64_t offset_ = 0;
  NodePtr root_;
};
using LayoutPtr = std::shared_ptr<const Layout>;

}  // namespace bestride::inline datatype
