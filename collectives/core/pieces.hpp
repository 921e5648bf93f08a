// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces: the order in which node vectors cross the network. All ranks compute the same order, without communication.
#include <cstdint>

#include "collectives/core/lanes.hpp"
#include "collectives/core/node_vectors.hpp"

namespace bestride::inline collectives {

/// How node vectors are cut into pieces. Equal on all ranks.
struct PieceLayout {
  int lanes = 1;           ///< lanes of a vector
  std::int64_t piece = 1;  ///< largest piece, in bytes
  std::int64_t unit = 1;   ///< lanes are cut at its multiples
};

/// The intersection of two ranges; empty if bytes() <= 0.
constexpr Range intersection(Range a, Range b) noexcept {
  return {std::max(a.first, b.first), std::min(a.last, b.last)};
}

/// The pieces of some lanes of one vector: the first piece of each lane, then the second of each, so that all lanes
/// advance together. No piece is empty.
class LanePieces {
 public:
  /// The pieces of a vector of `bytes` bytes, or of the vector of a node.
  LanePieces(std::int64_t bytes, PieceLayout cut, Lanes lanes) noexcept;
  LanePieces(const NodeVectors& vectors, PieceLayout cut, int node, Lanes lanes) noexcept
      : LanePieces(vectors.bytes(node), cut, lanes) {}
  /// False if there are no more pieces.
  bool next() noexcept;

  int lane = 0;
  Range range;  ///< of the vector

 private:
  Range lane_range(int index) const noexcept { return part_of(bytes_, cut_.lanes, index, cut_.unit); }

  std::int64_t bytes_;
  PieceLayout cut_;
  Lanes lanes_;
  std::int64_t pieces_ = 0, index_ = 0;  ///< pieces of the longest lane
  int lane_;
};

/// The pieces of some lanes of the vectors of all nodes but one: first those of the next node, then of the one after
/// it, up to the previous node.
class OtherNodesPieces {
 public:
  /// `vectors` outlives this object.
  OtherNodesPieces(const NodeVectors& vectors, PieceLayout cut, int nodes, int but, Lanes lanes) noexcept
      : vectors_(&vectors),
        cut_(cut),
        nodes_(nodes),
        but_(but),
        lanes_(lanes),
        node_((but + 1) % nodes),
        piece_(vectors, cut, node_, lanes) {}
  /// False if there are no more pieces.
  bool next() noexcept;
  int node() const noexcept { return node_; }
  int lane() const noexcept { return piece_.lane; }
  Range range() const noexcept { return piece_.range; }

 private:
  const NodeVectors* vectors_;
  PieceLayout cut_;
  int nodes_, but_;
  Lanes lanes_;
  int node_;
  LanePieces piece_;
};

}  // namespace bestride::inline collectives
