// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/gather.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/copy.hpp"
#include "collectives/core/pieces.hpp"

namespace bestride::inline collectives {
namespace {

class GatherAlgorithm {
 public:
  GatherAlgorithm(Hierarchy& hierarchy, const NodeVectors& vectors, int root, PipelineSettings pipeline,
                  std::int64_t unit)
      : h_(hierarchy),
        vectors_(vectors),
        root_(root),
        root_node_(hierarchy.topology().node_of(root)),
        root_local_(hierarchy.topology().local_rank_of(root)),
        cut_{hierarchy.lanes(), std::min(pipeline.piece, hierarchy.channels().slot_bytes()), unit},
        in_flight_(pipeline.in_flight) {}

  Task run() {
    std::vector<Task> tasks;
    if (h_.node() != root_node_) {
      tasks.push_back(send());
      if (h_.local_ranks() > 1) tasks.push_back(give_carriers());
    } else {
      tasks.push_back(receive());
      if (h_.rank() == root_)
        for (int q = 0; q < h_.local_ranks(); ++q) {
          if (q == root_local_) continue;
          tasks.push_back(take_own(q));
          tasks.push_back(take_arrived(q));
        }
      else {
        pass_over_neighbors();
        tasks.push_back(give_root());
      }
    }
    co_await all_of(tasks);
  }

 private:
  Range part(int local_rank) const noexcept { return vectors_.part(h_.node(), local_rank); }
  std::byte* staging(int index) noexcept { return h_.staging() + index * cut_.piece; }
  /// What local rank q of the root's node receives.
  OtherNodesPieces arriving(int q) const noexcept {
    return {vectors_, cut_, h_.nodes(), root_node_, lanes_of(q, h_.local_ranks(), h_.lanes())};
  }

  /// Passes this rank's data in each lane to the carrier of that lane.
  Task give_carriers() {
    for (LanePieces piece(vectors_, cut_, h_.node(), {0, h_.lanes()}); piece.next();) {
      const int reader = h_.local_carrier(piece.lane);
      const Range given = intersection(piece.range, part(h_.local_rank()));
      if (reader == h_.local_rank() || given.length() <= 0) continue;
      co_await until([&] { return h_.channels().vacant(ChannelKind::own); });
      h_.channels().fill(ChannelKind::own, vectors_, h_.node(), given);
      h_.channels().publish(ChannelKind::own, reader);
    }
  }

  /// Sends the lanes of this rank, and skips the slots that its neighbors publish for other carriers.
  Task send() {
    std::vector<Transfer> sent(static_cast<std::size_t>(in_flight_));
    const Range own = part(h_.local_rank());
    int count = 0;
    for (LanePieces piece(vectors_, cut_, h_.node(), {0, h_.lanes()}); piece.next();) {
      const int carrier = h_.local_carrier(piece.lane);
      if (carrier != h_.local_rank()) {
        for (int q = 0; q < h_.local_ranks(); ++q)
          if (q != h_.local_rank() && q != carrier && intersection(piece.range, part(q)).length() > 0)
            h_.channels().skip(q, ChannelKind::own);
        continue;
      }
      const int slot = count % in_flight_;
      if (count >= in_flight_)
        co_await until([&] { return h_.transport().done(sent[static_cast<std::size_t>(slot)]); });
      const std::byte* data =
          intersection(piece.range, own) == piece.range ? vectors_.at(h_.node(), piece.range) : nullptr;
      if (!data) {
        for (int q = 0; q < h_.local_ranks(); ++q) {
          const Range met = intersection(piece.range, part(q));
          if (met.length() <= 0) continue;
          std::byte* destination = staging(slot) + (met.first - piece.range.first);
          if (q == h_.local_rank()) {
            vectors_.read(h_.node(), met, destination);
            continue;
          }
          co_await until([&] { return h_.channels().arrived(q, ChannelKind::own) != nullptr; });
          copy_bytes(destination, h_.channels().arrived(q, ChannelKind::own), static_cast<std::size_t>(met.length()));
          h_.channels().take(q, ChannelKind::own);
        }
        data = staging(slot);
      }
      sent[static_cast<std::size_t>(slot)] =
          h_.transport().send(h_.carrier(root_node_, piece.lane), data, piece.range.length());
      ++count;
    }
    for (int i = std::max(0, count - in_flight_); i < count; ++i)
      co_await until([&] { return h_.transport().done(sent[static_cast<std::size_t>(i % in_flight_)]); });
  }

  /// On the root's node: receives the lanes of this rank. The root keeps the data; any other rank passes it to the
  /// root.
  Task receive() {
    struct PendingReceive {
      Transfer transfer;
      std::byte* staged = nullptr;
    };
    std::vector<PendingReceive> posted(static_cast<std::size_t>(in_flight_));
    OtherNodesPieces ahead = arriving(h_.local_rank()), piece = arriving(h_.local_rank());
    int first = 0, last = 0;
    for (; piece.next(); ++first) {
      for (; last - first < in_flight_ && ahead.next(); ++last) {
        PendingReceive& pending = posted[static_cast<std::size_t>(last % in_flight_)];
        std::byte* direct = h_.rank() == root_ ? vectors_.at(ahead.node(), ahead.range()) : nullptr;
        pending.staged = direct ? nullptr : staging(last % in_flight_);
        pending.transfer = h_.transport().receive(h_.carrier(ahead.node(), ahead.lane()),
                                                  direct ? direct : pending.staged, ahead.range().length());
      }
      PendingReceive& pending = posted[static_cast<std::size_t>(first % in_flight_)];
      co_await until([&] { return h_.transport().done(pending.transfer); });
      if (h_.rank() == root_) {
        if (pending.staged) vectors_.write(piece.node(), piece.range(), pending.staged);
        continue;
      }
      co_await until([&] { return h_.channels().vacant(ChannelKind::arrived); });
      h_.channels().fill(ChannelKind::arrived, pending.staged, piece.range().length());
      h_.channels().publish(ChannelKind::arrived, root_local_);
    }
  }

  Task give_root() {
    const Range own = part(h_.local_rank());
    for (std::int64_t i = 0; i < pieces_in(own.length(), cut_.piece); ++i) {
      co_await until([&] { return h_.channels().vacant(ChannelKind::own); });
      h_.channels().fill(ChannelKind::own, vectors_, h_.node(), piece_of(own, i, cut_.piece));
      h_.channels().publish(ChannelKind::own, root_local_);
    }
  }

  /// Skips everything that the other ranks of the root's node publish: it is for the root.
  void pass_over_neighbors() noexcept {
    for (int q = 0; q < h_.local_ranks(); ++q) {
      if (q == h_.local_rank() || q == root_local_) continue;
      h_.channels().skip(q, ChannelKind::own, pieces_in(part(q).length(), cut_.piece));
      for (OtherNodesPieces piece = arriving(q); piece.next();) h_.channels().skip(q, ChannelKind::arrived);
    }
  }

  Task take_own(int q) {
    for (std::int64_t i = 0; i < pieces_in(part(q).length(), cut_.piece); ++i) {
      co_await until([&] { return h_.channels().arrived(q, ChannelKind::own) != nullptr; });
      vectors_.write(h_.node(), piece_of(part(q), i, cut_.piece), h_.channels().arrived(q, ChannelKind::own));
      h_.channels().take(q, ChannelKind::own);
    }
  }

  Task take_arrived(int q) {
    for (OtherNodesPieces piece = arriving(q); piece.next();) {
      co_await until([&] { return h_.channels().arrived(q, ChannelKind::arrived) != nullptr; });
      vectors_.write(piece.node(), piece.range(), h_.channels().arrived(q, ChannelKind::arrived));
      h_.channels().take(q, ChannelKind::arrived);
    }
  }

  Hierarchy& h_;
  const NodeVectors& vectors_;
  const int root_, root_node_, root_local_;
  const PieceLayout cut_;
  const int in_flight_;
};

}  // namespace

Task gather(Hierarchy& hierarchy, const NodeVectors& vectors, int root, PipelineSettings pipeline, std::int64_t unit) {
  GatherAlgorithm work(hierarchy, vectors, root, pipeline, unit);
  co_await work.run();
}

}  // namespace bestride::inline collectives
