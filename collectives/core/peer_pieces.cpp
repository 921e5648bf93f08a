// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/peer_pieces.hpp"

#include <algorithm>

namespace bestride::inline collectives {

std::vector<Peer> peers_of(const Hierarchy& h, int local_rank, bool ahead) {
  std::vector<Peer> peers;
  const Lanes own = lanes_of(local_rank, h.local_ranks(), h.lanes());
  for (int step = 1; step < h.nodes(); ++step) {
    const int node = (h.node() + (ahead ? step : h.nodes() - step)) % h.nodes();
    for (int lane = own.first; lane < own.last; ++lane) {
      const int rank = h.carrier(node, lane);
      if (lane == own.first || rank != peers.back().rank) peers.push_back({rank, node, {lane, lane}});
      ++peers.back().lanes.last;
    }
  }
  return peers;
}

bool PeerPieces::next() noexcept {
  for (; index_ < relayed_ranges_.size(); ++index_, lane_ = lanes_.first) {
    const RelayedRange& relayed_range = relayed_ranges_[index_];
    if (message_ == PeerMessage::own ? relayed_range.relay != RelayedRange::direct && relayed_range.relay != to_
                                     : relayed_range.node == to_)
      continue;
    for (; lane_ < lanes_.last; ++lane_, piece_ = 0) {
      const Range part = part_of(relayed_range.range.length(), cut_.lanes, lane_, cut_.unit),
                  begun = piece_of(part, piece_, cut_.piece);
      if (begun.length() == 0) continue;
      range = {relayed_range.range.first + begun.first, relayed_range.range.first + begun.last};
      ++piece_;
      return true;
    }
  }
  return false;
}

}  // namespace bestride::inline collectives
