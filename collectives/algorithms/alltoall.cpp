// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/alltoall.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/copy.hpp"
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/pieces.hpp"

namespace bestride::inline collectives {
namespace {

class AlltoallAlgorithm {
 public:
  AlltoallAlgorithm(Hierarchy& hierarchy, const Operands& input, const Operands& output, PipelineSettings pipeline)
      : h_(hierarchy),
        input_(input),
        output_(output),
        block_(input.bytes(0)),
        rows_(hierarchy.topology(), input),
        piece_(std::min(
            {pipeline.piece, hierarchy.channels().slot_bytes(), Hierarchy::staging_bytes / (2 * pipeline.in_flight)})),
        in_flight_(pipeline.in_flight),
        whole_(pipeline.whole),
        ahead_(static_cast<std::size_t>(hierarchy.local_ranks())) {}

  Task run() {
    keep_own();
    std::vector<Task> tasks;
    count_ahead();
    tasks.push_back(send());
    tasks.push_back(receive());
    if (h_.local_ranks() > 1) tasks.push_back(give());
    for (int q = 0; q < h_.local_ranks(); ++q)
      if (q != h_.local_rank()) {
        tasks.push_back(take_local(q));
        tasks.push_back(take_arrived(q));
      }
    co_await all_of(tasks);
  }

 private:
  /// The pieces of the vectors that this node sends or receives, in the order in which they cross the network. Both
  /// ends compute the same order.
  class Turns {
   public:
    Turns(const AlltoallAlgorithm& of, bool sent) noexcept : of_(of), sent_(sent) {}
    bool next() noexcept {
      const int nodes = of_.h_.nodes();
      for (;;) {
        for (; index_ < pieces_; ++index_, part_ = 0)
          while (part_ < parts_) {
            const int part = part_++;
            range = piece_of(part_of(bytes_, parts_, part), index_, of_.piece_);
            if (range.length() == 0) continue;
            here = carrier(of_.h_.node(), part);
            there = of_.h_.topology().ranks_on(node)[static_cast<std::size_t>(carrier(node, part))];
            return true;
          }
        if (++step_ >= nodes) return false;
        node = (of_.h_.node() + (sent_ ? step_ : nodes - step_)) % nodes;
        bytes_ = of_.vector_bytes(node);
        parts_ = bytes_ < of_.whole_ ? 1 : of_.h_.lanes();
        pieces_ = pieces_in(part_of(bytes_, parts_, 0).length(), of_.piece_);
        index_ = part_ = 0;
      }
    }
    int node = 0;   ///< of the peer
    int here = 0;   ///< the local rank of this node that carries the piece
    int there = 0;  ///< the rank of the peer node that carries it
    Range range;    ///< of the vector between the two nodes

   private:
    /// The local rank that carries a part on one of the two nodes. A part is a lane; a short vector is a single part,
    /// carried by a different rank in each step.
    int carrier(int of_node, int part) const noexcept {
      const int ranks = static_cast<int>(of_.h_.topology().ranks_on(of_node).size());
      return parts_ == 1 ? (step_ - 1) % ranks : carrier_of(part, ranks, parts_);
    }

    const AlltoallAlgorithm& of_;
    const bool sent_;
    int step_ = 0, parts_ = 0, part_ = 0;
    std::int64_t bytes_ = 0, pieces_ = 0, index_ = 0;
  };

  std::int64_t ranks_on(int node) const noexcept {
    return static_cast<std::int64_t>(h_.topology().ranks_on(node).size());
  }
  /// Bytes of the vector to a node; the vector from that node has the same size.
  std::int64_t vector_bytes(int node) const noexcept { return h_.local_ranks() * ranks_on(node) * block_; }
  /// What local rank q sends, as a range of the vector that goes to a node.
  Range row(int node, int q) const noexcept {
    const std::int64_t bytes = ranks_on(node) * block_;
    return {q * bytes, (q + 1) * bytes};
  }
  /// What rank `from` sends to local rank q, as a range of the vector that comes from its node.
  Range block(int from, int q) const noexcept {
    const std::int64_t first = (std::int64_t{h_.topology().local_rank_of(from)} * h_.local_ranks() + q) * block_;
    return {first, first + block_};
  }
  int rank_of(int q) const noexcept { return h_.topology().ranks_on(h_.node())[static_cast<std::size_t>(q)]; }
  std::byte* staging(int index) noexcept { return h_.staging() + index * piece_; }

  /// `range`: of the vector from node `from`. For each sending rank with data for local rank q in it, calls use(sending
  /// rank, range of its block, distance from range.first).
  template <class Use>
  void blocks(int from, Range range, int q, Use use) const noexcept {
    for (const int rank : h_.topology().ranks_on(from)) {
      const Range whole = block(rank, q), met = intersection(whole, range);
      if (met.length() > 0) use(rank, Range{met.first - whole.first, met.last - whole.first}, met.first - range.first);
    }
  }
  /// True if local rank q receives a part of this range.
  bool any_for(int from, Range range, int q) const noexcept {
    for (const int rank : h_.topology().ranks_on(from))
      if (intersection(block(rank, q), range).length() > 0) return true;
    return false;
  }

  /// Copies this rank's block to itself. Runs before any message, so the staging memory is unused.
  void keep_own() noexcept {
    const Operand from = input_.of(h_.rank()), to = output_.of(h_.rank());
    if (from.at(0)) {
      to.write(from.at(0), 0, from.bytes());
      return;
    }
    for (std::int64_t i = 0; i < pieces_in(from.bytes(), piece_); ++i) {
      const Range range = piece_of({0, from.bytes()}, i, piece_);
      from.read(h_.staging(), range.first, range.last);
      to.write(h_.staging(), range.first, range.last);
    }
  }

  /// True if local rank q passes data of a sent piece to the carrier.
  bool hands(int q, const Turns& turn) const noexcept {
    return q != turn.here && intersection(row(turn.node, q), turn.range).length() > 0;
  }
  void count_ahead() noexcept {
    for (Turns turn(*this, true); turn.next();)
      for (int q = 0; q < h_.local_ranks(); ++q) ahead_[static_cast<std::size_t>(q)] += hands(q, turn);
  }

  /// Passes this rank's data for other nodes to the carriers on this node. Then passes the neighbors their blocks,
  /// beginning with the next local rank, so that the ranks do not all serve the same neighbor at a time.
  Task give() {
    for (Turns turn(*this, true); turn.next();) {
      if (!hands(h_.local_rank(), turn)) continue;
      const Range own = row(turn.node, h_.local_rank()), met = intersection(own, turn.range);
      co_await until([&] { return h_.channels().vacant(ChannelKind::own); });
      h_.channels().fill(ChannelKind::own, rows_, turn.node, {met.first - own.first, met.last - own.first});
      h_.channels().publish(ChannelKind::own, turn.here);
    }
    for (std::int64_t i = 0; i < pieces_in(block_, piece_); ++i)
      for (int step = 1; step < h_.local_ranks(); ++step) {
        const int q = (h_.local_rank() + step) % h_.local_ranks();
        const Range range = piece_of({0, block_}, i, piece_);
        co_await until([&] { return h_.channels().vacant(ChannelKind::own); });
        h_.channels().fill(ChannelKind::own, input_.of(rank_of(q)), range);
        h_.channels().publish(ChannelKind::own, q);
      }
  }
  Task take_local(int from) {
    co_await until([&] { return ahead_[static_cast<std::size_t>(from)] == 0; });
    for (std::int64_t i = 0; i < pieces_in(block_, piece_); ++i)
      for (int step = 1; step < h_.local_ranks(); ++step) {
        const int q = (from + step) % h_.local_ranks();
        if (q != h_.local_rank()) {
          h_.channels().skip(from, ChannelKind::own);
          continue;
        }
        co_await until([&] { return h_.channels().arrived(from, ChannelKind::own) != nullptr; });
        const Range range = piece_of({0, block_}, i, piece_);
        output_.of(rank_of(from)).write(h_.channels().arrived(from, ChannelKind::own), range.first, range.last);
        h_.channels().take(from, ChannelKind::own);
      }
  }

  /// Sends the pieces that this rank carries, and skips the slots that its neighbors publish for other carriers.
  Task send() {
    std::vector<Transfer> sent(static_cast<std::size_t>(in_flight_));
    int count = 0;
    for (Turns turn(*this, true); turn.next();) {
      if (turn.here != h_.local_rank()) {
        for (int q = 0; q < h_.local_ranks(); ++q) {
          if (q == h_.local_rank() || !hands(q, turn)) continue;
          h_.channels().skip(q, ChannelKind::own);
          --ahead_[static_cast<std::size_t>(q)];
        }
        continue;
      }
      const int slot = count % in_flight_;
      if (count >= in_flight_)
        co_await until([&] { return h_.transport().done(sent[static_cast<std::size_t>(slot)]); });
      const Range own = row(turn.node, h_.local_rank());
      const std::byte* data = nullptr;
      if (intersection(own, turn.range) == turn.range)
        data = rows_.at(turn.node, {turn.range.first - own.first, turn.range.last - own.first});
      if (!data) {
        for (int q = 0; q < h_.local_ranks(); ++q) {
          const Range met = intersection(row(turn.node, q), turn.range);
          if (met.length() <= 0) continue;
          std::byte* destination = staging(slot) + (met.first - turn.range.first);
          if (q == h_.local_rank()) {
            rows_.read(turn.node, {met.first - own.first, met.last - own.first}, destination);
            continue;
          }
          co_await until([&] { return h_.channels().arrived(q, ChannelKind::own) != nullptr; });
          copy_bytes(destination, h_.channels().arrived(q, ChannelKind::own), static_cast<std::size_t>(met.length()));
          h_.channels().take(q, ChannelKind::own);
          --ahead_[static_cast<std::size_t>(q)];
        }
        data = staging(slot);
      }
      sent[static_cast<std::size_t>(slot)] = h_.transport().send(turn.there, data, turn.range.length());
      ++count;
    }
    for (int i = std::max(0, count - in_flight_); i < count; ++i)
      co_await until([&] { return h_.transport().done(sent[static_cast<std::size_t>(i % in_flight_)]); });
  }

  /// Receives the pieces that this rank carries, keeps its own blocks and passes the others to their owners.
  Task receive() {
    struct PendingReceive {
      Transfer transfer;
      std::byte* staged = nullptr;
    };
    std::vector<PendingReceive> posted(static_cast<std::size_t>(in_flight_));
    Turns ahead(*this, false), turn(*this, false);
    const auto next_own = [this](Turns* turns) {
      while (turns->next())
        if (turns->here == h_.local_rank()) return true;
      return false;
    };
    int first = 0, last = 0;
    for (; next_own(&turn); ++first) {
      for (; last - first < in_flight_ && next_own(&ahead); ++last) {
        PendingReceive& pending = posted[static_cast<std::size_t>(last % in_flight_)];
        std::byte* direct = nullptr;
        blocks(ahead.node, ahead.range, h_.local_rank(), [&](int rank, Range part, std::int64_t) {
          if (part.length() == ahead.range.length()) direct = output_.of(rank).at(part.first);
        });
        pending.staged = direct ? nullptr : staging(in_flight_ + last % in_flight_);
        pending.transfer = h_.transport().receive(ahead.there, direct ? direct : pending.staged, ahead.range.length());
      }
      PendingReceive& pending = posted[static_cast<std::size_t>(first % in_flight_)];
      co_await until([&] { return h_.transport().done(pending.transfer); });
      for (int q = 0; pending.staged && q < h_.local_ranks(); ++q) {
        if (q == h_.local_rank()) {
          blocks(turn.node, turn.range, q, [&](int rank, Range part, std::int64_t at) {
            output_.of(rank).write(pending.staged + at, part.first, part.last);
          });
          continue;
        }
        if (!any_for(turn.node, turn.range, q)) continue;
        co_await until([&] { return h_.channels().vacant(ChannelKind::arrived); });
        std::int64_t filled = 0;
        blocks(turn.node, turn.range, q, [&](int, Range part, std::int64_t at) {
          h_.channels().fill(ChannelKind::arrived, pending.staged + at, part.length(), filled);
          filled += part.length();
        });
        h_.channels().publish(ChannelKind::arrived, q);
      }
    }
  }

  /// Takes this rank's blocks of the pieces that a neighbor received. The neighbor publishes one slot for each piece
  /// and owner.
  Task take_arrived(int from) {
    for (Turns turn(*this, false); turn.next();) {
      if (turn.here != from) continue;
      for (int q = 0; q < h_.local_ranks(); ++q) {
        if (q == from || !any_for(turn.node, turn.range, q)) continue;
        if (q != h_.local_rank()) {
          h_.channels().skip(from, ChannelKind::arrived);
          continue;
        }
        co_await until([&] { return h_.channels().arrived(from, ChannelKind::arrived) != nullptr; });
        const std::byte* data = h_.channels().arrived(from, ChannelKind::arrived);
        blocks(turn.node, turn.range, q, [&](int rank, Range part, std::int64_t) {
          output_.of(rank).write(data, part.first, part.last);
          data += part.length();
        });
        h_.channels().take(from, ChannelKind::arrived);
      }
    }
  }

  Hierarchy& h_;
  const Operands& input_;
  const Operands& output_;
  const std::int64_t block_;  ///< bytes of each block
  const RankBlocks rows_;     ///< by node: this rank's data for that node
  const std::int64_t piece_;
  const int in_flight_;
  const std::int64_t whole_;
  std::vector<std::int64_t>
      ahead_;  ///< by local rank: its slots for carriers that are still to come; its blocks for this node follow
};

}  // namespace

Task alltoall(Hierarchy& hierarchy, const Operands& input, const Operands& output, PipelineSettings pipeline) {
  AlltoallAlgorithm work(hierarchy, input, output, pipeline);
  co_await work.run();
}

Task pairwise_alltoall(Hierarchy& hierarchy, const Operands& input, const Operands& output) {
  const int ranks = hierarchy.topology().ranks(), rank = hierarchy.rank();
  for (int step = 0; step < ranks; ++step) {
    const int to = (rank + step) % ranks, from = (rank + ranks - step) % ranks;
    const std::int64_t sent = input.bytes(to), received = output.bytes(from);
    std::vector<std::byte> out(static_cast<std::size_t>(sent)), in(static_cast<std::size_t>(received));
    input.of(to).read(out.data(), 0, sent);
    if (step == 0) {
      output.of(from).write(out.data(), 0, received);
      continue;
    }
    Transfer sending, receiving;
    if (sent > 0) sending = hierarchy.transport().send(to, out.data(), sent);
    if (received > 0) receiving = hierarchy.transport().receive(from, in.data(), received);
    if (sent > 0) co_await until([&] { return hierarchy.transport().done(sending); });
    if (received > 0) co_await until([&] { return hierarchy.transport().done(receiving); });
    output.of(from).write(in.data(), 0, received);
  }
}

}  // namespace bestride::inline collectives
