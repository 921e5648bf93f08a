// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/scatter.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/copy.hpp"
#include "collectives/core/pieces.hpp"

namespace bestride::inline collectives {
namespace {

class ScatterAlgorithm {
 public:
  ScatterAlgorithm(Hierarchy& hierarchy, const NodeVectors& vectors, int root, PipelineSettings pipeline,
                   std::int64_t unit)
      : h_(hierarchy),
        vectors_(vectors),
        root_(root),
        root_node_(hierarchy.topology().node_of(root)),
        root_local_(hierarchy.topology().local_rank_of(root)),
        cut_{hierarchy.lanes(), std::min(pipeline.piece, hierarchy.channels().slot_bytes()), unit},
        in_flight_(pipeline.in_flight) {
    if (h_.node() == root_node_)
      for (int q = 0; q < h_.local_ranks(); ++q)
        if (q != root_local_) neighbors_pieces_ = std::max(neighbors_pieces_, pieces_in(part(q).length(), cut_.piece));
  }

  Task run() {
    std::vector<Task> tasks;
    if (h_.node() != root_node_) {
      tasks.push_back(receive());
      for (int q = 0; q < h_.local_ranks(); ++q)
        if (q != h_.local_rank()) tasks.push_back(take_arrived(q));
    } else {
      tasks.push_back(send());
      if (h_.rank() != root_) {
        tasks.push_back(take_own_part());
      } else if (h_.local_ranks() > 1) {
        tasks.push_back(give_carriers());
        tasks.push_back(give_neighbors());
      }
    }
    co_await all_of(tasks);
  }

 private:
  Range part(int local_rank) const noexcept { return vectors_.part(h_.node(), local_rank); }
  std::byte* staging(int index) noexcept { return h_.staging() + index * cut_.piece; }
  /// The pieces that leave the root's node.
  OtherNodesPieces leaving() const noexcept { return {vectors_, cut_, h_.nodes(), root_node_, {0, h_.lanes()}}; }

  Task give_carriers() {
    for (OtherNodesPieces piece = leaving(); piece.next();) {
      const int reader = h_.local_carrier(piece.lane());
      if (reader == root_local_) continue;
      co_await until([&] { return h_.channels().vacant(ChannelKind::own); });
      h_.channels().fill(ChannelKind::own, vectors_, piece.node(), piece.range());
      h_.channels().publish(ChannelKind::own, reader);
    }
  }

  /// On the root's node: sends the lanes of this rank, and skips those of its neighbors.
  Task send() {
    std::vector<Transfer> sent(static_cast<std::size_t>(in_flight_));
    int count = 0;
    for (OtherNodesPieces piece = leaving(); piece.next();) {
      const int carrier = h_.local_carrier(piece.lane());
      if (carrier != h_.local_rank()) {
        if (h_.rank() != root_ && carrier != root_local_) h_.channels().skip(root_local_, ChannelKind::own);
        continue;
      }
      const int slot = count % in_flight_;
      if (count >= in_flight_)
        co_await until([&] { return h_.transport().done(sent[static_cast<std::size_t>(slot)]); });
      const std::byte* data = h_.rank() == root_ ? vectors_.at(piece.node(), piece.range()) : nullptr;
      if (!data) {
        data = staging(slot);
        if (h_.rank() == root_) {
          vectors_.read(piece.node(), piece.range(), staging(slot));
        } else {
          // Copied, not sent from the slot: four slots are too few for the pieces that all carriers have in flight.
          co_await until([&] { return h_.channels().arrived(root_local_, ChannelKind::own) != nullptr; });
          copy_bytes(staging(slot), h_.channels().arrived(root_local_, ChannelKind::own),
                     static_cast<std::size_t>(piece.range().length()));
          h_.channels().take(root_local_, ChannelKind::own);
        }
      }
      sent[static_cast<std::size_t>(slot)] =
          h_.transport().send(h_.carrier(piece.node(), piece.lane()), data, piece.range().length());
      ++count;
    }
    for (int i = std::max(0, count - in_flight_); i < count; ++i)
      co_await until([&] { return h_.transport().done(sent[static_cast<std::size_t>(i % in_flight_)]); });
  }

  /// Passes the parts of the root's node to the neighbors, one piece each in turn.
  Task give_neighbors() {
    for (std::int64_t i = 0; i < neighbors_pieces_; ++i)
      for (int q = 0; q < h_.local_ranks(); ++q) {
        const Range range = piece_of(part(q), i, cut_.piece);
        if (q == root_local_ || range.length() == 0) continue;
        co_await until([&] { return h_.channels().vacant(ChannelKind::arrived); });
        h_.channels().fill(ChannelKind::arrived, vectors_, h_.node(), range);
        h_.channels().publish(ChannelKind::arrived, q);
      }
  }

  Task take_own_part() {
    for (std::int64_t i = 0; i < neighbors_pieces_; ++i)
      for (int q = 0; q < h_.local_ranks(); ++q) {
        const Range range = piece_of(part(q), i, cut_.piece);
        if (q == root_local_ || range.length() == 0) continue;
        if (q != h_.local_rank()) {
          h_.channels().skip(root_local_, ChannelKind::arrived);
          continue;
        }
        co_await until([&] { return h_.channels().arrived(root_local_, ChannelKind::arrived) != nullptr; });
        vectors_.write(h_.node(), range, h_.channels().arrived(root_local_, ChannelKind::arrived));
        h_.channels().take(root_local_, ChannelKind::arrived);
      }
  }

  /// On another node: receives the lanes of this rank, keeps its own part and passes the rest to its owners.
  Task receive() {
    struct PendingReceive {
      Transfer transfer;
      std::byte* staged = nullptr;
    };
    std::vector<PendingReceive> posted(static_cast<std::size_t>(in_flight_));
    const Range own = part(h_.local_rank());
    LanePieces ahead(vectors_, cut_, h_.node(), h_.own_lanes()), piece = ahead;
    int first = 0, last = 0;
    for (; piece.next(); ++first) {
      for (; last - first < in_flight_ && ahead.next(); ++last) {
        PendingReceive& pending = posted[static_cast<std::size_t>(last % in_flight_)];
        std::byte* direct =
            intersection(ahead.range, own) == ahead.range ? vectors_.at(h_.node(), ahead.range) : nullptr;
        pending.staged = direct ? nullptr : staging(last % in_flight_);
        pending.transfer = h_.transport().receive(h_.carrier(root_node_, ahead.lane), direct ? direct : pending.staged,
                                                  ahead.range.length());
      }
      PendingReceive& pending = posted[static_cast<std::size_t>(first % in_flight_)];
      co_await until([&] { return h_.transport().done(pending.transfer); });
      for (int q = 0; pending.staged && q < h_.local_ranks(); ++q) {
        const Range met = intersection(piece.range, part(q));
        if (met.length() <= 0) continue;
        const std::byte* data = pending.staged + (met.first - piece.range.first);
        if (q == h_.local_rank()) {
          vectors_.write(h_.node(), met, data);
          continue;
        }
        co_await until([&] { return h_.channels().vacant(ChannelKind::arrived); });
        h_.channels().fill(ChannelKind::arrived, data, met.length());
        h_.channels().publish(ChannelKind::arrived, q);
      }
    }
  }

  /// On another node than the root's: takes this rank's part of the lanes of a neighbor.
  Task take_arrived(int from) {
    for (LanePieces piece(vectors_, cut_, h_.node(), lanes_of(from, h_.local_ranks(), h_.lanes())); piece.next();)
      for (int q = 0; q < h_.local_ranks(); ++q) {
        const Range met = intersection(piece.range, part(q));
        if (met.length() <= 0 || q == from) continue;
        if (q != h_.local_rank()) {
          h_.channels().skip(from, ChannelKind::arrived);
          continue;
        }
        co_await until([&] { return h_.channels().arrived(from, ChannelKind::arrived) != nullptr; });
        vectors_.write(h_.node(), met, h_.channels().arrived(from, ChannelKind::arrived));
        h_.channels().take(from, ChannelKind::arrived);
      }
  }

  Hierarchy& h_;
  const NodeVectors& vectors_;
  const int root_, root_node_, root_local_;
  const PieceLayout cut_;
  const int in_flight_;
  std::int64_t neighbors_pieces_ = 0;  ///< pieces of the longest part that the root passes to a rank of its node
};

}  // namespace

Task scatter(Hierarchy& hierarchy, const NodeVectors& vectors, int root, PipelineSettings pipeline, std::int64_t unit) {
  ScatterAlgorithm work(hierarchy, vectors, root, pipeline, unit);
  co_await work.run();
}

}  // namespace bestride::inline collectives
