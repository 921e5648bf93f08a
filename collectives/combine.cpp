// SPDX-License-Identifier: Apache-2.0
#include "collectives/combine.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace bestride {
namespace {

/// Buffers in staging: those of `in_flight` sent pieces a lane, two rounds of what the other nodes send for each of our lanes, and one round of our own.
int sent_buffers(const Hierarchy& h, const ReductionOrder& order, Pace pace) noexcept { return h.most_lanes() * pace.in_flight * order.most_partials(); }
int round_buffers(const Hierarchy& h, const ReductionOrder& order) noexcept {
  int partials = 0;
  for (int node = 0; node < h.nodes(); ++node) partials += order.partials(node);
  return partials * h.most_lanes();
}

class Combine {
 public:
  Combine(Hierarchy& hierarchy, const NodeStrings& input, const Reduction& reduction, const ReductionOrder& order, ResultSink& sink, Pace pace)
      : h_(hierarchy), input_(input), reduction_(reduction), order_(order), sink_(sink), unit_(reduction.element_bytes),
        piece_(combine_piece(hierarchy, order, reduction.piece_unit(), pace)), in_flight_(pace.in_flight * (hierarchy.own_lanes().last - hierarchy.own_lanes().first)),
        round_(round_buffers(hierarchy, order)),
        kept_(static_cast<std::size_t>(hierarchy.own_lanes().last - hierarchy.own_lanes().first)),
        sent_(static_cast<std::size_t>(sent_buffers(hierarchy, order, pace))),
        received_(2 * static_cast<std::size_t>(round_)) {
    for (int node = 0; node < h_.nodes(); ++node)
      for (int lane = 0; lane < h_.lanes(); ++lane) pieces_ = std::max(pieces_, pieces_in(lane_of(node, lane).bytes(), piece_));
    int before = 0;
    for (int node = 0; node < h_.nodes(); ++node) {
      before_.push_back(before);
      before += order_.partials(node);
    }
    all_partials_ = before;
  }

  Strand run() {
    std::vector<Strand> strands;
    if (h_.local_ranks() > 1) strands.push_back(give());
    strands.push_back(contribute());
    strands.push_back(finish());
    co_await all_of(strands);
  }

 private:
  Range lane_of(int node, int lane) const noexcept { return input_.lane(node, lane, h_.lanes(), unit_); }
  /// In the order of rounds (piece), steps and lanes, the same for all ranks of a node. Step N: the node itself.
  struct Turn {
    std::int64_t piece = 0;
    int step = 1, lane = -1;
    int node = 0;
    Range range;
  };
  bool next(Turn* turn) const noexcept {
    for (;;) {
      if (++turn->lane == h_.lanes()) {
        turn->lane = 0;
        if (++turn->step > h_.nodes()) {
          turn->step = 1;
          ++turn->piece;
        }
      }
      if (turn->piece >= pieces_) return false;
      turn->node = (h_.node() + turn->step) % h_.nodes();
      turn->range = piece_of(lane_of(turn->node, turn->lane), turn->piece, piece_);
      if (turn->range.bytes() > 0) return true;
    }
  }

  /// Hands the carriers what this rank has in their lanes.
  Strand give() {
    for (Turn turn; next(&turn);) {
      const int reader = h_.local_carrier(turn.lane);
      if (reader == h_.local_rank()) continue;
      co_await until([&] { return h_.channels().vacant(Stream::own); });
      input_.read(turn.node, turn.range, h_.channels().slot(Stream::own));
      h_.channels().publish(Stream::own, reader);
    }
  }

  std::byte* sent_buffer(std::int64_t index) noexcept { return h_.staging() + index * piece_; }
  /// Of the round's lanes, where a node's partial result is put.
  std::size_t received_index(std::int64_t round, int own_lane, int node, int partial) const noexcept {
    return static_cast<std::size_t>(round % 2 * round_ + own_lane * all_partials_ + before_[static_cast<std::size_t>(node)] + partial);
  }
  std::byte* received_buffer(std::size_t index) noexcept { return h_.staging() + (static_cast<std::int64_t>(sent_.size() + index)) * piece_; }

  /// Starts to receive what other nodes send in a round.
  void post(std::int64_t round) noexcept {
    const Lanes own = h_.own_lanes();
    for (int step = 1; step < h_.nodes(); ++step) {
      const int from = (h_.node() + h_.nodes() - step) % h_.nodes();
      for (int lane = own.first; lane < own.last; ++lane) {
        const Range range = piece_of(lane_of(h_.node(), lane), round, piece_);
        for (int partial = 0; range.bytes() > 0 && partial < order_.partials(from); ++partial) {
          const std::size_t index = received_index(round, lane - own.first, from, partial);
          received_[index] = h_.wire().receive(h_.carrier(from, lane), received_buffer(index), wire_bytes(range));
        }
      }
    }
  }

  /// Combines what this node has of each lane it carries, and sends it on; what belongs to this node itself is kept for finish().
  Strand contribute() {
    const Lanes own = h_.own_lanes();
    const int partials = order_.partials(h_.node());
    std::int64_t sends = 0;
    for (Turn turn; next(&turn);) {
      const int carrier = h_.local_carrier(turn.lane);
      if (carrier != h_.local_rank()) {
        for (int q = 0; q < h_.local_ranks(); ++q)
          if (q != h_.local_rank() && q != carrier) h_.channels().skip(q, Stream::own);
        continue;
      }
      const bool sent = turn.node != h_.node();
      const std::int64_t slot = sends % in_flight_ * partials;
      if (sent) {
        for (int i = 0; sends >= in_flight_ && i < partials; ++i)
          co_await until([&] { return h_.wire().done(sent_[static_cast<std::size_t>(slot + i)]); });
      } else {
        co_await until([&] { return finished_ + 2 > turn.piece; });
      }
      co_await until([&] {
        for (int q = 0; q < h_.local_ranks(); ++q)
          if (q != h_.local_rank() && !h_.channels().arrived(q, Stream::own)) return false;
        return true;
      });
      for (int i = 0; i < partials; ++i)
        if (sent)
          combine_to_send(turn, i, sent_buffer(slot + i));
        else
          combine_here(turn, i, received_buffer(received_index(turn.piece, turn.lane - own.first, h_.node(), i)));
      for (int q = 0; q < h_.local_ranks(); ++q)
        if (q != h_.local_rank()) h_.channels().take(q, Stream::own);
      if (!sent) {
        kept_[static_cast<std::size_t>(turn.lane - own.first)] = turn.piece + 1;
        continue;
      }
      for (int i = 0; i < partials; ++i)
        sent_[static_cast<std::size_t>(slot + i)] = h_.wire().send(h_.carrier(turn.node, turn.lane), sent_buffer(slot + i), wire_bytes(turn.range));
      ++sends;
    }
    for (std::int64_t i = std::max<std::int64_t>(0, sends - in_flight_); i < sends; ++i)
      for (int k = 0; k < partials; ++k)
        co_await until([&] { return h_.wire().done(sent_[static_cast<std::size_t>(i % in_flight_ * partials + k)]); });
  }

  /// Combines what all nodes have of this node's lanes, and delivers it.
  Strand finish() {
    const Lanes own = h_.own_lanes();
    for (std::int64_t posted = 0; finished_ < pieces_; ++finished_) {
      for (; posted < std::min(finished_ + 2, pieces_); ++posted) post(posted);
      for (int lane = own.first; lane < own.last; ++lane) {
        const Range range = piece_of(lane_of(h_.node(), lane), finished_, piece_);
        if (range.bytes() == 0) continue;
        for (int node = 0; node < h_.nodes(); ++node)
          for (int i = 0; node != h_.node() && i < order_.partials(node); ++i)
            co_await until([&] { return h_.wire().done(received_[received_index(finished_, lane - own.first, node, i)]); });
        co_await until([&] { return kept_[static_cast<std::size_t>(lane - own.first)] > finished_; });
        co_await sink_.deliver(lane, range, combine_all(range.bytes(), lane - own.first));
      }
    }
  }

  std::int64_t wire_bytes(Range range) const noexcept {
    return reduction_.coding ? reduction_.coding->coded_bytes(range.bytes()) : range.bytes();
  }
  /// As it crosses the wire. Codes are made of the whole result of this node, in full precision.
  void combine_to_send(const Turn& turn, int partial, std::byte* into) noexcept {
    if (!reduction_.coding) return combine_here(turn, partial, into);
    std::byte* plain = depth_buffer(2);
    combine_here(turn, partial, plain);
    reduction_.coding->encode(plain, turn.range.bytes(), into);
  }

  /// Combines what the ranks of this node have. All pieces of the neighbours have arrived.
  void combine_here(const Turn& turn, int partial, std::byte* into) noexcept {
    if (order_.ordered()) {
      const Subtree& tree = order_.partial(h_.node(), partial);
      combine_tree(turn, tree.first, tree.last, into);
      return;
    }
    input_.read(turn.node, turn.range, into);
    for (int q = 0; q < h_.local_ranks(); ++q)
      if (q != h_.local_rank()) reduction_.combine(h_.channels().arrived(q, Stream::own), into, turn.range.bytes());
  }
  /// The right half goes into `into`, the left half into a buffer that is not needed any more: the slot its first rank gave it in, or `into`'s
  /// place in an own buffer of that depth.
  void combine_tree(const Turn& turn, int first, int last, std::byte* into) noexcept {
    if (last - first == 1) {
      if (first == h_.rank())
        input_.read(turn.node, turn.range, into);
      else
        std::memcpy(into, h_.channels().arrived(h_.topology().local_rank_of(first), Stream::own), static_cast<std::size_t>(turn.range.bytes()));
      return;
    }
    const int middle = ReductionOrder::cut(first, last);
    combine_tree(turn, middle, last, into);
    if (middle - first == 1 && first != h_.rank()) {
      reduction_.combine(h_.channels().arrived(h_.topology().local_rank_of(first), Stream::own), into, turn.range.bytes());
      return;
    }
    std::byte* left = depth_buffer(last - first);
    combine_tree(turn, first, middle, left);
    reduction_.combine(left, into, turn.range.bytes());
  }
  /// One for each size of a tree, at the end of staging: a tree's left half is smaller than the tree, so each is used once at a time.
  std::byte* depth_buffer(int size) noexcept {
    int depth = 1;
    while ((1 << depth) < size) ++depth;
    return h_.staging() + Hierarchy::staging_bytes - depth * piece_;
  }

  /// Combines the partial results of all nodes; returns where the result is.
  const std::byte* combine_all(std::int64_t bytes, int own_lane) noexcept {
    if (order_.ordered()) {
      next_partial_.assign(static_cast<std::size_t>(h_.nodes()), 0);
      return combine_partials(bytes, own_lane, 0, h_.topology().ranks());
    }
    std::byte* result = received_buffer(received_index(finished_, own_lane, h_.node(), 0));
    for (int node = 0; node < h_.nodes(); ++node)
      if (node != h_.node()) {
        const std::byte* arrived = received_buffer(received_index(finished_, own_lane, node, 0));
        if (reduction_.coding)
          reduction_.coding->combine(arrived, result, bytes);
        else
          reduction_.combine(arrived, result, bytes);
      }
    return result;
  }
  /// Trees are walked from left to right, so each node's partial results come up in their order.
  std::byte* combine_partials(std::int64_t bytes, int own_lane, int first, int last) noexcept {
    const int node = h_.topology().node_of(first);
    const int index = next_partial_[static_cast<std::size_t>(node)];
    const Subtree* subtree = index < order_.partials(node) ? &order_.partial(node, index) : nullptr;
    if (subtree && subtree->first == first && subtree->last == last) {
      ++next_partial_[static_cast<std::size_t>(node)];
      return received_buffer(received_index(finished_, own_lane, node, index));
    }
    const int middle = ReductionOrder::cut(first, last);
    const std::byte* left = combine_partials(bytes, own_lane, first, middle);
    std::byte* right = combine_partials(bytes, own_lane, middle, last);
    reduction_.combine(left, right, bytes);
    return right;
  }

  Hierarchy& h_;
  const NodeStrings& input_;
  const Reduction& reduction_;
  const ReductionOrder& order_;
  ResultSink& sink_;
  const std::int64_t unit_, piece_;
  const int in_flight_;              ///< sends, of all lanes together
  const int round_;                  ///< buffers of a round
  int all_partials_ = 0;
  std::int64_t pieces_ = 0;          ///< rounds: of the longest lane
  std::int64_t finished_ = 0;        ///< rounds delivered
  std::vector<std::int64_t> kept_;   ///< by own lane: rounds of which this node's own part is kept
  std::vector<int> before_;          ///< by node: partial results of the nodes before it
  std::vector<Transfer> sent_;
  std::vector<Transfer> received_;
  std::vector<int> next_partial_;
};

}  // namespace

std::int64_t combine_piece(const Hierarchy& h, const ReductionOrder& order, std::int64_t unit, Pace pace) noexcept {
  int depths = 1;
  while ((1 << depths) < h.topology().ranks()) ++depths;
  const std::int64_t room = Hierarchy::staging_bytes / (sent_buffers(h, order, pace) + 2 * round_buffers(h, order) + depths);
  const std::int64_t most = std::min(room, h.channels().slot_bytes());
  return unit > most ? 0 : std::clamp(pace.piece, unit, most) / unit * unit;
}

Strand combine(Hierarchy& hierarchy, const NodeStrings& input, const Reduction& reduction, const ReductionOrder& order, ResultSink& sink, Pace pace) {
  Combine work(hierarchy, input, reduction, order, sink, pace);
  co_await work.run();
}

}  // namespace bestride
