// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reduction: the operation of a reduce, and the order in which it is applied.
//
// An exact operation (integers, least and greatest, logical and bitwise) gives the same bits in any order, so a node combines what its
// ranks have and sends one partial result. Any other is applied in one fixed order: a balanced tree over the ranks' numbers, cut at the
// largest power of two below the number of ranks. A node can combine only what is a whole subtree, so it sends as many partial results
// as it has greatest subtrees: one if every node holds an aligned run of 2^k ranks, one a rank if ranks are dealt in turn.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/wire_coding.hpp"
#include "model/topology.hpp"

namespace bestride {

class Reduction {
 public:
  /// Bytes of an element, its gaps with it. Nothing is cut inside of one.
  std::int64_t element_bytes = 1;
  /// The order matters: see above.
  bool ordered = false;
  /// As what partial results cross the wire; nullptr: as they are. Outlives this. Not if the order matters.
  const WireCoding* coding = nullptr;
  /// Pieces are cut at its multiples.
  std::int64_t piece_unit() const noexcept { return coding ? coding->block_bytes : element_bytes; }

  /// inout = in OP inout, element by element; `bytes` is a multiple of element_bytes. The ranks of `in` stand before those of `inout`.
  virtual void combine(const std::byte* in, std::byte* inout, std::int64_t bytes) const noexcept = 0;

 protected:
  ~Reduction() = default;
};

/// A run of ranks whose contributions are combined by themselves, and where that happens.
struct Subtree {
  int first = 0, last = 0;  ///< ranks [first, last)
  int node = 0;
};

/// The order of a reduction over the ranks of a topology: the same on all ranks.
class ReductionOrder {
 public:
  /// May throw std::bad_alloc.
  ReductionOrder(const Topology& topology, bool ordered);

  bool ordered() const noexcept { return ordered_; }
  /// What a node's ranks combine to: its greatest subtrees, ascending; one, of all its ranks, if the order does not matter.
  int partials(int node) const noexcept { return begins_[static_cast<std::size_t>(node) + 1] - begins_[static_cast<std::size_t>(node)]; }
  int most_partials() const noexcept { return most_; }
  const Subtree& partial(int node, int index) const noexcept {
    return subtrees_[static_cast<std::size_t>(begins_[static_cast<std::size_t>(node)] + index)];
  }
  /// Where a tree over [first, last) is cut: the largest power of two below its size, from `first`.
  static int cut(int first, int last) noexcept;

 private:
  void add(const Topology& topology, int first, int last, std::vector<std::vector<Subtree>>& by_node);
  bool ordered_;
  int most_ = 1;
  std::vector<Subtree> subtrees_;  ///< node after node
  std::vector<int> begins_;
};

}  // namespace bestride
