// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces: in which order strings cross the wire, so that all ranks count alike without asking each other.
#include <cstdint>

#include "collectives/lanes.hpp"
#include "collectives/strings.hpp"

namespace bestride {

/// How strings are cut into pieces. Equal on all ranks.
struct Cut {
  int lanes = 1;           ///< of a string
  std::int64_t piece = 1;  ///< bytes of a piece at most
  std::int64_t unit = 1;   ///< lanes are cut at its multiples
};

/// The common bytes of two ranges; bytes() <= 0: none.
constexpr Range common(Range a, Range b) noexcept { return {std::max(a.first, b.first), std::min(a.last, b.last)}; }

/// The pieces of some lanes of one string: the first of each lane, then the second of each, so that all lanes advance together.
/// None is empty.
class LanePieces {
 public:
  /// Of a string of so many bytes; of a node's string.
  LanePieces(std::int64_t bytes, Cut cut, Lanes lanes) noexcept;
  LanePieces(const NodeStrings& strings, Cut cut, int node, Lanes lanes) noexcept : LanePieces(strings.bytes(node), cut, lanes) {}
  /// False: there are no more.
  bool next() noexcept;

  int lane = 0;
  Range range;  ///< of the string

 private:
  Range lane_range(int index) const noexcept { return part_of(bytes_, cut_.lanes, index, cut_.unit); }

  std::int64_t bytes_;
  Cut cut_;
  Lanes lanes_;
  std::int64_t pieces_ = 0, index_ = 0;  ///< of the longest lane
  int lane_;
};

/// The pieces of some lanes of all nodes' strings but one's: of the node after it, then of the next, up to the one before it.
class OtherNodesPieces {
 public:
  /// `strings` outlives this.
  OtherNodesPieces(const NodeStrings& strings, Cut cut, int nodes, int but, Lanes lanes) noexcept
      : strings_(&strings), cut_(cut), nodes_(nodes), but_(but), lanes_(lanes), node_((but + 1) % nodes),
        piece_(strings, cut, node_, lanes) {}
  /// False: there are no more.
  bool next() noexcept;
  int node() const noexcept { return node_; }
  int lane() const noexcept { return piece_.lane; }
  Range range() const noexcept { return piece_.range; }

 private:
  const NodeStrings* strings_;
  Cut cut_;
  int nodes_, but_;
  Lanes lanes_;
  int node_;
  LanePieces piece_;
};

}  // namespace bestride
