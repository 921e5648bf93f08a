// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/bcast.hpp"

#include <algorithm>
#include <vector>

#include "collectives/core/pieces.hpp"

namespace bestride::inline collectives {
namespace {

class BcastAlgorithm {
 public:
  BcastAlgorithm(Hierarchy& hierarchy, Operand data, int root, PipelineSettings pipeline)
      : h_(hierarchy),
        data_(data),
        root_(root),
        piece_(std::min(pipeline.piece, hierarchy.channels().slot_bytes())),
        in_flight_(pipeline.in_flight),
        here_(static_cast<std::size_t>(hierarchy.lanes())) {
    const int nodes = h_.nodes(), first = h_.topology().node_of(root);
    const int position = (h_.node() - first + nodes) % nodes;  // position in the chain
    previous_ = position == 0 ? -1 : (h_.node() + nodes - 1) % nodes;
    next_ = position == nodes - 1 ? -1 : (h_.node() + 1) % nodes;
    if (h_.rank() == root) std::fill(here_.begin(), here_.end(), data_.bytes());
  }

  Task run() {
    std::vector<Task> tasks;
    if (next_ >= 0) tasks.push_back(send());
    if (previous_ >= 0) {
      tasks.push_back(receive());
      for (int q = 0; q < h_.local_ranks(); ++q)
        if (q != h_.local_rank())
          tasks.push_back(take(q, ChannelKind::arrived, lanes_of(q, h_.local_ranks(), h_.lanes())));
    } else if (h_.rank() == root_) {
      if (h_.local_ranks() > 1) tasks.push_back(give());
    } else {
      tasks.push_back(take(h_.topology().local_rank_of(root_), ChannelKind::own, {0, h_.lanes()}));
    }
    co_await all_of(tasks);
  }

 private:
  LanePieces pieces(Lanes lanes) const noexcept { return {data_.bytes(), {h_.lanes(), piece_, 1}, lanes}; }
  std::byte* staging(int index) noexcept { return h_.staging() + index * piece_; }

  /// The root passes all data to the ranks of its node.
  Task give() {
    for (LanePieces piece = pieces({0, h_.lanes()}); piece.next();) {
      co_await until([&] { return h_.channels().vacant(ChannelKind::own); });
      h_.channels().fill(ChannelKind::own, data_, piece.range);
      h_.channels().publish(ChannelKind::own);
    }
  }

  Task take(int from, ChannelKind stream, Lanes lanes) {
    for (LanePieces piece = pieces(lanes); piece.next();) {
      co_await until([&] { return h_.channels().arrived(from, stream) != nullptr; });
      data_.write(h_.channels().arrived(from, stream), piece.range.first, piece.range.last);
      h_.channels().take(from, stream);
      here_[static_cast<std::size_t>(piece.lane)] = piece.range.last;
    }
  }

  Task send() {
    std::vector<Transfer> sent(static_cast<std::size_t>(in_flight_));
    int count = 0;
    for (LanePieces piece = pieces(h_.own_lanes()); piece.next(); ++count) {
      const int slot = count % in_flight_;
      Transfer& transfer = sent[static_cast<std::size_t>(slot)];
      if (count >= in_flight_) co_await until([&] { return h_.transport().done(transfer); });
      co_await until([&] { return here_[static_cast<std::size_t>(piece.lane)] >= piece.range.last; });
      const std::byte* data = data_.at(piece.range.first);
      if (!data) {
        data_.read(staging(slot), piece.range.first, piece.range.last);
        data = staging(slot);
      }
      transfer = h_.transport().send(h_.carrier(next_, piece.lane), data, piece.range.length());
    }
    for (int i = std::max(0, count - in_flight_); i < count; ++i)
      co_await until([&] { return h_.transport().done(sent[static_cast<std::size_t>(i % in_flight_)]); });
  }

  Task receive() {
    std::vector<Transfer> posted(static_cast<std::size_t>(in_flight_));
    LanePieces ahead = pieces(h_.own_lanes());
    int first = 0, last = 0;
    for (LanePieces piece = pieces(h_.own_lanes()); piece.next(); ++first) {
      for (; last - first < in_flight_ && ahead.next(); ++last) {
        std::byte* memory = data_.at(ahead.range.first);
        if (!memory) memory = staging(in_flight_ + last % in_flight_);
        posted[static_cast<std::size_t>(last % in_flight_)] =
            h_.transport().receive(h_.carrier(previous_, ahead.lane), memory, ahead.range.length());
      }
      co_await until([&] { return h_.transport().done(posted[static_cast<std::size_t>(first % in_flight_)]); });
      if (!data_.at(piece.range.first))
        data_.write(staging(in_flight_ + first % in_flight_), piece.range.first, piece.range.last);
      here_[static_cast<std::size_t>(piece.lane)] = piece.range.last;
      if (h_.local_ranks() == 1) continue;
      co_await until([&] { return h_.channels().vacant(ChannelKind::arrived); });
      h_.channels().fill(ChannelKind::arrived, data_, piece.range);
      h_.channels().publish(ChannelKind::arrived);
    }
  }

  Hierarchy& h_;
  const Operand data_;
  const int root_;
  const std::int64_t piece_;
  const int in_flight_;
  int previous_, next_;             ///< nodes of the chain; -1: none
  std::vector<std::int64_t> here_;  ///< by lane: the offset up to which its pieces are in this rank's buffer
};

}  // namespace

Task bcast(Hierarchy& hierarchy, Operand data, int root, PipelineSettings pipeline) {
  BcastAlgorithm work(hierarchy, data, root, pipeline);
  co_await work.run();
}

}  // namespace bestride::inline collectives
