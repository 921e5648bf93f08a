// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/pieces.hpp"

#include <algorithm>

namespace bestride::inline collectives {

LanePieces::LanePieces(std::int64_t bytes, PieceLayout cut, Lanes lanes) noexcept
    : bytes_(bytes), cut_(cut), lanes_(lanes), lane_(lanes.first) {
  for (int i = lanes.first; i < lanes.last; ++i)
    pieces_ = std::max(pieces_, pieces_in(lane_range(i).length(), cut.piece));
}

bool LanePieces::next() noexcept {
  for (; index_ < pieces_; ++index_, lane_ = lanes_.first)
    while (lane_ < lanes_.last) {
      lane = lane_++;
      range = piece_of(lane_range(lane), index_, cut_.piece);
      if (range.length() > 0) return true;
    }
  return false;
}

bool OtherNodesPieces::next() noexcept {
  while (node_ != but_) {
    if (piece_.next()) return true;
    node_ = (node_ + 1) % nodes_;
    if (node_ != but_) piece_ = LanePieces(*vectors_, cut_, node_, lanes_);
  }
  return false;
}

}  // namespace bestride::inline collectives
