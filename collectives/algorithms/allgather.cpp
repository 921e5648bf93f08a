// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/allgather.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <vector>

#include "base/copy.hpp"
#include "collectives/core/intra_node.hpp"
#include "collectives/core/peer_pieces.hpp"
#include "collectives/core/relays.hpp"

namespace bestride::inline collectives {
namespace {

constexpr int max_pairs_at_a_time = 16;
/// Messages in flight per pair of ranks, if there are several pairs: messages queued for one pair delay the others.
/// Measured with 4 MiB and pieces of 16 KiB, for 8, 4 and 2 messages: 3 x 2 ranks at 200 Mbit/s 1.10, 1.08 and 1.07
/// times the limit; 3, 1 and 2 ranks 1.10, 1.06 and 1.06; 4 x 2 at 50 Mbit/s 1.14, 1.11 and 1.06.
constexpr int max_in_flight = 2;

/// Number of pairs that a rank serves concurrently; the same on all members.
int pairs_at_a_time(const Hierarchy& h) noexcept {
  return std::clamp((h.nodes() - 1) * h.max_lanes(), 1, max_pairs_at_a_time);
}

class AllgatherAlgorithm {
 public:
  AllgatherAlgorithm(Hierarchy& hierarchy, const NodeVectors& vectors, const RelayPlan& plan, PipelineSettings pipeline,
                     std::int64_t unit, PieceObserver* kept, PieceCode* code)
      : h_(hierarchy),
        vectors_(vectors),
        plan_(plan),
        kept_(kept),
        code_(code),
        in_flight_(pipeline.in_flight),
        pairs_(pairs_at_a_time(hierarchy)),
        cut_{hierarchy.lanes(), piece(pipeline, unit), unit},
        own_(hierarchy, vectors, cut_.piece),
        to_(peers_of(hierarchy, hierarchy.local_rank(), true)),
        from_(peers_of(hierarchy, hierarchy.local_rank(), false)),
        sent_(to_.size()),
        received_(from_.size()),
        relayed_(plan.through(hierarchy.node()).size(), hierarchy.own_lanes()) {}

  Task run() {
    std::vector<Task> tasks;
    for (const PeerMessage message : {PeerMessage::own, PeerMessage::onward})
      for (int turn = 0; turn < pairs_; ++turn) {
        tasks.push_back(send(turn, message));
        tasks.push_back(receive(turn, message));
      }
    own_.exchange(tasks);
    if (h_.local_ranks() > 1) tasks.push_back(pass_on());
    for (int q = 0; q < h_.local_ranks(); ++q)
      if (q != h_.local_rank()) tasks.push_back(take_arrived(q));
    co_await all_of(tasks);
  }

 private:
  /// The pieces that a rank of this node receives, in the order in which it passes them to its neighbors: round robin
  /// over a group of concurrent pairs, and for each pair first the `own`, then the `onward` message. The next group of
  /// pairs follows when all pairs of this one are done.
  class Arrivals {
   public:
    Arrivals(const AllgatherAlgorithm& share, const std::vector<Peer>& from)
        : together_(static_cast<std::size_t>(share.pairs_)) {
      for (const Peer& peer : from)
        for (const PeerMessage message : {PeerMessage::own, PeerMessage::onward})
          legs_.emplace_back(share.plan_, share.cut_, peer.node, share.h_.node(), peer.lanes, message);
    }
    bool next() noexcept {
      for (; begin_ < pairs(); begin_ += together_) {
        const std::size_t together = std::min(together_, pairs() - begin_);
        for (std::size_t tried = 0; tried < together; ++tried) {
          pair_ = begin_ + ++turn_ % together;
          for (const std::size_t message : {2 * pair_, 2 * pair_ + 1})
            if (legs_[message].next()) {
              message_ = message;
              return true;
            }
        }
      }
      return false;
    }
    std::size_t pair() const noexcept { return pair_; }
    PeerMessage message() const noexcept { return message_ % 2 ? PeerMessage::onward : PeerMessage::own; }
    int node() const noexcept { return legs_[message_].relayed_range().node; }
    Range range() const noexcept { return legs_[message_].range; }

   private:
    std::size_t pairs() const noexcept { return legs_.size() / 2; }

    const std::size_t together_;
    std::vector<PeerPieces> legs_;  ///< two per pair
    std::size_t begin_ = 0, turn_ = 0, pair_ = 0, message_ = 0;
  };

  struct Progress {
    std::int64_t pieces[2] = {0, 0};  ///< completed pieces, by PeerMessage
    bool own_over = false;
  };

  /// Buffers in staging: in_flight_ pieces to send and as many to receive, for both messages of each pair. With a code,
  /// also as many encoded pieces to send, and one received encoded piece.
  static int rooms(int pairs, int in_flight, bool coded) noexcept {
    return pairs * in_flight * (coded ? 6 : 4) + coded;
  }
  std::int64_t piece(PipelineSettings pipeline, std::int64_t unit) const noexcept {
    const std::int64_t most = std::min({pipeline.piece, h_.channels().slot_bytes(),
                                        Hierarchy::staging_bytes / rooms(pairs_, in_flight_, code_ != nullptr)});
    return std::max(unit, most / unit * unit);
  }
  enum Use { to_send, to_receive, coded };
  std::byte* staging(Use use, PeerMessage message, int turn, std::int64_t index) noexcept {
    return h_.staging() +
           (((2 * use + static_cast<int>(message)) * pairs_ + turn) * in_flight_ + index % in_flight_) * cut_.piece;
  }

  /// Serves the pairs `turn`, turn + pairs_, ... one after the other.
  Task send(int turn, PeerMessage message) {
    std::vector<Transfer> sent(static_cast<std::size_t>(in_flight_));
    for (std::size_t pair = static_cast<std::size_t>(turn); pair < to_.size();
         pair += static_cast<std::size_t>(pairs_)) {
      PeerPieces pieces(plan_, cut_, h_.node(), to_[pair].node, to_[pair].lanes, message);
      if (message == PeerMessage::onward && pieces.none()) continue;
      if (message == PeerMessage::onward) co_await until([&] { return sent_[pair].own_over; });
      std::int64_t count = 0;
      for (; pieces.next(); ++count) {
        Transfer& transfer = sent[static_cast<std::size_t>(count % in_flight_)];
        if (count >= in_flight_) co_await until([&] { return h_.transport().done(transfer); });
        co_await until([&] {
          return message == PeerMessage::own ? own_.here(pieces.range)
                                             : relayed_.reached(pieces.relayed_range(), pieces.lane(), pieces.range);
        });
        const int node = pieces.relayed_range().node;
        const std::byte* data = vectors_.at(node, pieces.range);
        if (!data) {
          std::byte* staged = staging(to_send, message, turn, count);
          vectors_.read(node, pieces.range, staged);
          data = staged;
        }
        std::int64_t bytes = pieces.range.length();
        if (code_) {
          std::byte* shorter = staging(coded, message, turn, count);
          if (const std::int64_t size = code_->encode(node, pieces.range, data, shorter)) {
            data = shorter;
            bytes = size;
          }
        }
        transfer = h_.transport().send(to_[pair].rank, data, bytes);
      }
      for (std::int64_t i = std::max<std::int64_t>(0, count - in_flight_); i < count; ++i)
        co_await until([&] { return h_.transport().done(sent[static_cast<std::size_t>(i % in_flight_)]); });
      if (message == PeerMessage::own) sent_[pair].own_over = true;
    }
  }

  Task receive(int turn, PeerMessage message) {
    struct PendingReceive {
      Transfer transfer;
      std::byte* memory = nullptr;
      bool staged = false;
    };
    std::vector<PendingReceive> posted(static_cast<std::size_t>(in_flight_));
    for (std::size_t pair = static_cast<std::size_t>(turn); pair < from_.size();
         pair += static_cast<std::size_t>(pairs_)) {
      PeerPieces pieces(plan_, cut_, from_[pair].node, h_.node(), from_[pair].lanes, message), ahead = pieces;
      if (message == PeerMessage::onward && pieces.none()) continue;
      if (message == PeerMessage::onward) co_await until([&] { return received_[pair].own_over; });
      std::int64_t first = 0, last = 0;
      for (; pieces.next(); ++first) {
        for (; last - first < in_flight_ && ahead.next(); ++last) {
          PendingReceive& pending = posted[static_cast<std::size_t>(last % in_flight_)];
          std::byte* direct = vectors_.at(ahead.relayed_range().node, ahead.range);
          pending.staged = !direct;
          pending.memory = direct ? direct : staging(to_receive, message, turn, last);
          pending.transfer = h_.transport().receive(from_[pair].rank, pending.memory, ahead.range.length());
        }
        PendingReceive& pending = posted[static_cast<std::size_t>(first % in_flight_)];
        co_await until([&] { return h_.transport().done(pending.transfer); });
        arrive(pieces, pending.transfer.bytes, pending.memory, pending.staged);
        ++received_[pair].pieces[static_cast<int>(message)];
      }
      if (message == PeerMessage::own) received_[pair].own_over = true;
    }
  }

  /// `bytes` of a piece have arrived in `memory`: in staging if `staged`, else in the user's buffer.
  void arrive(const PeerPieces& pieces, std::int64_t bytes, std::byte* memory, bool staged) {
    const RelayedRange& relayed_range = pieces.relayed_range();
    if (code_ && bytes < pieces.range.length()) {
      std::byte* shorter = h_.staging() + (rooms(pairs_, in_flight_, true) - 1) * cut_.piece;
      copy_bytes(shorter, memory, static_cast<std::size_t>(bytes));
      if (!code_->decode(relayed_range.node, pieces.range, shorter, bytes, memory)) throw std::exception();
    }
    if (staged) vectors_.write(relayed_range.node, pieces.range, memory);
    if (kept_) kept_->keep(relayed_range.node, pieces.range, memory);
    if (relayed_range.relay == h_.node()) relayed_.reach(relayed_range, pieces.lane(), pieces.range);
  }

  /// Passes received pieces on to the neighbors.
  Task pass_on() {
    std::vector<Progress> passed(from_.size());
    for (Arrivals arrivals(*this, from_); arrivals.next();) {
      const int message = static_cast<int>(arrivals.message());
      const std::int64_t number = passed[arrivals.pair()].pieces[message]++;
      co_await until([&] {
        return received_[arrivals.pair()].pieces[message] > number && h_.channels().vacant(ChannelKind::arrived);
      });
      h_.channels().fill(ChannelKind::arrived, vectors_, arrivals.node(), arrivals.range());
      h_.channels().publish(ChannelKind::arrived);
    }
  }

  Task take_arrived(int q) {
    for (Arrivals arrivals(*this, peers_of(h_, q, false)); arrivals.next();) {
      co_await until([&] { return h_.channels().arrived(q, ChannelKind::arrived) != nullptr; });
      vectors_.write(arrivals.node(), arrivals.range(), h_.channels().arrived(q, ChannelKind::arrived));
      h_.channels().take(q, ChannelKind::arrived);
    }
  }

  Hierarchy& h_;
  const NodeVectors& vectors_;
  const RelayPlan& plan_;
  PieceObserver* const kept_;
  PieceCode* const code_;
  const int in_flight_, pairs_;
  const PieceLayout cut_;
  IntraNodeExchange own_;
  const std::vector<Peer> to_, from_;
  std::vector<Progress> sent_, received_;  ///< by pair
  RelayProgress relayed_;
};

}  // namespace

Task allgather(Hierarchy& hierarchy, const NodeVectors& vectors, PipelineSettings pipeline, std::int64_t unit,
               PieceObserver* kept, PieceCode* code) {
  const RelayPlan plan(bytes_of(vectors, hierarchy.nodes()), unit, pipeline.uneven);
  if (hierarchy.nodes() > 2) {
    pipeline.in_flight = std::min(pipeline.in_flight, max_in_flight);
    std::int64_t longest = 0;
    for (int node = 0; node < hierarchy.nodes(); ++node)
      for (const RelayedRange& relayed_range : plan.of(node))
        longest = std::max(longest, relayed_range.range.length() / hierarchy.lanes());
    // Shorter pieces give more encoded bytes in total.
    if (!plan.even() || !code) pipeline = pipeline.finer(longest, plan.even() ? 32 : 10);
  }
  AllgatherAlgorithm work(hierarchy, vectors, plan, pipeline, unit, kept, code);
  co_await work.run();
}

}  // namespace bestride::inline collectives
