// SPDX-License-Identifier: Apache-2.0
#pragma once
// NodeStrings: what a collective moves, as one string of bytes for each node: what the node has to give, or what it is to get.
// The lanes are slices of these strings.
#include <cstddef>
#include <vector>

#include "collectives/lanes.hpp"
#include "collectives/operand.hpp"
#include "model/topology.hpp"

namespace bestride {

class NodeStrings {
 public:
  virtual std::int64_t bytes(int node) const noexcept = 0;
  /// The part of the node's string that belongs to one of its ranks: what it has, or is to get. In the order of local ranks.
  virtual Range part(int node, int local_rank) const noexcept = 0;
  /// Where the range lies, if it lies together in this rank's buffer; else nullptr.
  virtual std::byte* at(int node, Range range) const noexcept = 0;
  /// Between this rank's buffer and bytes that lie together.
  virtual void read(int node, Range range, void* to) const noexcept = 0;
  virtual void write(int node, Range range, const void* from) const noexcept = 0;

  /// Cut into lanes at multiples of `unit` bytes.
  Range lane(int node, int index, int lanes, std::int64_t unit = 1) const noexcept { return part_of(bytes(node), lanes, index, unit); }

 protected:
  ~NodeStrings() = default;
};

/// By node. May throw std::bad_alloc.
std::vector<std::int64_t> bytes_of(const NodeStrings& strings, int nodes);

/// A block for each rank; a node's string is those of its ranks, in their order.
class RankBlocks final : public NodeStrings {
 public:
  /// Both outlive this. May throw std::bad_alloc.
  RankBlocks(const Topology& topology, const Operands& blocks);

  std::int64_t bytes(int node) const noexcept override;
  Range part(int node, int local_rank) const noexcept override;
  std::byte* at(int node, Range range) const noexcept override;
  void read(int node, Range range, void* to) const noexcept override;
  void write(int node, Range range, const void* from) const noexcept override;

 private:
  /// use(block, part of the block, distance from range.first) for every block that the range meets.
  template <class Use>
  void each(int node, Range range, Use use) const noexcept;

  const Topology& topology_;
  const Operands& blocks_;
  std::vector<std::vector<std::int64_t>> begins_;  ///< by node: where its ranks' blocks begin in its string, and the end
};

/// One buffer that all ranks have, or a segment of it, cut into equal parts: one a node, and of that, one a lane.
class EvenParts final : public NodeStrings {
 public:
  /// The topology outlives this. `unit` divides the operand's bytes; nothing is cut but at its multiples.
  EvenParts(const Topology& topology, Operand whole, std::int64_t unit) noexcept : EvenParts(topology, whole, unit, {0, whole.bytes()}) {}
  /// `segment`: begins and ends at multiples of `unit`.
  EvenParts(const Topology& topology, Operand whole, std::int64_t unit, Range segment) noexcept
      : topology_(topology), whole_(whole), unit_(unit), segment_(segment) {}

  std::int64_t bytes(int node) const noexcept override { return of(node).bytes(); }
  Range part(int node, int local_rank) const noexcept override;
  std::byte* at(int node, Range range) const noexcept override { return whole_.at(of(node).first + range.first); }
  void read(int node, Range range, void* to) const noexcept override {
    whole_.read(to, of(node).first + range.first, of(node).first + range.last);
  }
  void write(int node, Range range, const void* from) const noexcept override {
    whole_.write(from, of(node).first + range.first, of(node).first + range.last);
  }

 private:
  Range of(int node) const noexcept {
    const Range part = part_of(segment_.bytes(), topology_.nodes(), node, unit_);
    return {segment_.first + part.first, segment_.first + part.last};
  }

  const Topology& topology_;
  Operand whole_;
  std::int64_t unit_;
  Range segment_;
};

}  // namespace bestride
