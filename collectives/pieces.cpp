// SPDX-License-Identifier: Apache-2.0
#include "collectives/pieces.hpp"

#include <algorithm>

namespace bestride {

LanePieces::LanePieces(const NodeStrings& strings, Cut cut, int node, Lanes lanes) noexcept
    : strings_(&strings), cut_(cut), node_(node), lanes_(lanes), lane_(lanes.first) {
  for (int i = lanes.first; i < lanes.last; ++i)
    pieces_ = std::max(pieces_, pieces_in(strings.lane(node, i, cut.lanes, cut.unit).bytes(), cut.piece));
}

bool LanePieces::next() noexcept {
  for (; index_ < pieces_; ++index_, lane_ = lanes_.first)
    while (lane_ < lanes_.last) {
      lane = lane_++;
      range = piece_of(strings_->lane(node_, lane, cut_.lanes, cut_.unit), index_, cut_.piece);
      if (range.bytes() > 0) return true;
    }
  return false;
}

bool OtherNodesPieces::next() noexcept {
  while (node_ != but_) {
    if (piece_.next()) return true;
    node_ = (node_ + 1) % nodes_;
    if (node_ != but_) piece_ = LanePieces(*strings_, cut_, node_, lanes_);
  }
  return false;
}

}  // namespace bestride
