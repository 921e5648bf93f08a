// SPDX-License-Identifier: Apache-2.0
#pragma once
// RelayedVectors: the vectors that are reduced if nodes receive unequal numbers of bytes. A node's vector holds the
// range that it receives directly, followed by the ranges that it relays to other nodes.
#include <cstddef>
#include <vector>

#include "collectives/core/node_vectors.hpp"
#include "collectives/core/relays.hpp"

namespace bestride::inline collectives {

/// A view of the vectors. It has no parts: the original vectors say which rank gets what.
class RelayedVectors final : public NodeVectors {
 public:
  /// Both outlive this object. The plan must be made from these vectors. May throw std::bad_alloc.
  RelayedVectors(const NodeVectors& vectors, const RelayPlan& plan, int nodes);

  std::int64_t bytes(int node) const noexcept override { return begins_[static_cast<std::size_t>(node)].back(); }
  Range part(int, int) const noexcept override { return {}; }
  std::byte* at(int, Range) const noexcept override { return nullptr; }
  void read(int node, Range range, void* to) const noexcept override;
  void write(int node, Range range, const void* from) const noexcept override;

  /// The number of ranges in a node's vector. The first is what the node receives directly; number i + 1 is
  /// RelayPlan::through(node)[i].
  std::size_t relayed_ranges(int node) const noexcept { return begins_[static_cast<std::size_t>(node)].size() - 1; }
  struct Overlap {
    int node = 0;             ///< owner of the vector
    Range range;              ///< a range of it; empty if bytes() <= 0
    std::int64_t offset = 0;  ///< distance from the beginning of the requested range
  };
  /// The intersection of a range of a node's vector with its range number `relayed_range`, as counted by
  /// relayed_ranges().
  Overlap overlap(int node, std::size_t relayed_range, Range range) const noexcept;

 private:
  const NodeVectors& vectors_;
  const RelayPlan& plan_;
  std::vector<std::vector<std::int64_t>> begins_;  ///< by node: where its ranges begin in its vector, and the end
};

}  // namespace bestride::inline collectives
