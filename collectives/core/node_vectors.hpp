// SPDX-License-Identifier: Apache-2.0
#pragma once
// NodeVectors: the data of a collective as one vector of bytes per node: what the node contributes, or what it
// receives. Lanes are slices of these vectors.
#include <cstddef>
#include <vector>

#include "collectives/core/lanes.hpp"
#include "collectives/core/operand.hpp"
#include "model/topology.hpp"

namespace bestride::inline collectives {

class NodeVectors {
 public:
  virtual std::int64_t bytes(int node) const noexcept = 0;
  /// The part of the node's vector that belongs to one of its ranks: what that rank contributes or receives. Parts are
  /// in the order of local ranks.
  virtual Range part(int node, int local_rank) const noexcept = 0;
  /// The address of the range if it is contiguous in this rank's buffer, else nullptr.
  virtual std::byte* at(int node, Range range) const noexcept = 0;
  /// read() and write() copy between this rank's buffer and contiguous memory.
  virtual void read(int node, Range range, void* to) const noexcept = 0;
  virtual void write(int node, Range range, const void* from) const noexcept = 0;

  /// The slice of lane `index`, cut at multiples of `unit` bytes.
  Range lane(int node, int index, int lanes, std::int64_t unit = 1) const noexcept {
    return part_of(bytes(node), lanes, index, unit);
  }

 protected:
  ~NodeVectors() = default;
};

/// The length of each node's vector. May throw std::bad_alloc.
std::vector<std::int64_t> bytes_of(const NodeVectors& vectors, int nodes);

/// One block per rank. A node's vector consists of the blocks of its ranks, in the order of local ranks.
class RankBlocks final : public NodeVectors {
 public:
  /// Both outlive this object. May throw std::bad_alloc.
  RankBlocks(const Topology& topology, const Operands& blocks);

  std::int64_t bytes(int node) const noexcept override;
  Range part(int node, int local_rank) const noexcept override;
  std::byte* at(int node, Range range) const noexcept override;
  void read(int node, Range range, void* to) const noexcept override;
  void write(int node, Range range, const void* from) const noexcept override;

 private:
  /// Calls use(block, part of the block, distance from range.first) for every block that the range overlaps.
  template <class Use>
  void each(int node, Range range, Use use) const noexcept;

  const Topology& topology_;
  const Operands& blocks_;
  std::vector<std::vector<std::int64_t>>
      begins_;  ///< by node: where the blocks of its ranks begin in its vector, and the end
};

/// One buffer that all ranks have, or a segment of it, cut into equal parts: one per node, and within it one per lane.
class EvenParts final : public NodeVectors {
 public:
  /// The topology outlives this object. `unit` divides the operand's bytes; all cuts are at its multiples.
  EvenParts(const Topology& topology, Operand whole, std::int64_t unit) noexcept
      : EvenParts(topology, whole, unit, {0, whole.bytes()}) {}
  /// `segment` begins and ends at multiples of `unit`.
  EvenParts(const Topology& topology, Operand whole, std::int64_t unit, Range segment) noexcept
      : topology_(topology), whole_(whole), unit_(unit), segment_(segment) {}

  std::int64_t bytes(int node) const noexcept override { return of(node).length(); }
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
    const Range part = part_of(segment_.length(), topology_.nodes(), node, unit_);
    return {segment_.first + part.first, segment_.first + part.last};
  }

  const Topology& topology_;
  Operand whole_;
  std::int64_t unit_;
  Range segment_;
};

}  // namespace bestride::inline collectives
