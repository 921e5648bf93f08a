// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reduction: the operation of a reduce, and the order in which it is applied.
//
// An exact operation (integers, minimum and maximum, logical and bitwise) gives the same bits in any order, so a node
// reduces the data of its ranks and sends one partial result. Any other operation is applied in one fixed order, that
// of a tree over the rank numbers (ReductionTree). A node can reduce only complete subtrees, so it sends one partial
// result per maximal subtree: one if every node holds an aligned run of 2^k ranks, one per rank if ranks are placed
// round-robin.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collectives/core/wire_coding.hpp"
#include "model/topology.hpp"

namespace bestride::inline collectives {

class ReductionTree {
 public:
  enum class Form : std::uint8_t {
    any,       ///< the order does not matter
    balanced,  ///< split at the largest power of two below the number of ranks
    paired,  ///< of 2^k + r ranks, the first 2r are combined in pairs, which leaves 2^k values; these as in `balanced`
  };
  ReductionTree() = default;
  /// A tree over ranks 0 to `ranks`-1.
  ReductionTree(Form form, int ranks) noexcept;

  bool ordered() const noexcept { return form_ != Form::any; }
  /// Where a complete subtree over ranks [first, last), two or more, is split.
  int cut(int first, int last) const noexcept;

 private:
  Form form_ = Form::any;
  int pairs_ = 0;
};

class Reduction {
 public:
  /// Bytes of an element, including its gaps. All cuts are between elements.
  std::int64_t element_bytes = 1;
  ReductionTree tree;
  /// How partial results are coded for the network; nullptr: as they are. It outlives this object. Must be nullptr if
  /// the order matters.
  const WireCoding* coding = nullptr;
  /// Pieces are cut at its multiples.
  std::int64_t piece_unit() const noexcept { return coding ? coding->block_bytes : element_bytes; }

  /// inout = in OP inout, element by element. `bytes` is a multiple of element_bytes. The ranks of `in` precede those
  /// of `inout`.
  virtual void combine(const std::byte* in, std::byte* inout, std::int64_t bytes) const noexcept = 0;

 protected:
  ~Reduction() = default;
};

/// A run of ranks whose contributions are reduced on one node.
struct Subtree {
  int first = 0, last = 0;  ///< ranks [first, last)
  int node = 0;
};

/// The order of a reduction over the ranks of a topology. The same on all ranks.
class ReductionOrder {
 public:
  /// May throw std::bad_alloc.
  ReductionOrder(const Topology& topology, const ReductionTree& tree);

  const ReductionTree& tree() const noexcept { return tree_; }
  /// The number of partial results of a node: its maximal subtrees, in ascending order. One, of all its ranks, if the
  /// order does not matter.
  int partials(int node) const noexcept {
    return begins_[static_cast<std::size_t>(node) + 1] - begins_[static_cast<std::size_t>(node)];
  }
  int max_partials() const noexcept { return most_; }
  const Subtree& partial(int node, int index) const noexcept {
    return subtrees_[static_cast<std::size_t>(begins_[static_cast<std::size_t>(node)] + index)];
  }

 private:
  void add(const Topology& topology, int first, int last, std::vector<std::vector<Subtree>>& by_node);
  ReductionTree tree_;
  int most_ = 1;
  std::vector<Subtree> subtrees_;  ///< node after node
  std::vector<int> begins_;
};

}  // namespace bestride::inline collectives
