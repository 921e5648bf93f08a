// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/reduce_to_owners.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/copy.hpp"

namespace bestride::inline collectives {
namespace {

/// Buffers in staging: for sending, `in_flight` pieces per lane and partial result; for reducing, two rounds of the
/// partial results of all nodes, including this one, for each lane of this rank.
int sent_buffers(const Hierarchy& h, const ReductionOrder& order, PipelineSettings pipeline) noexcept {
  return h.max_lanes() * pipeline.in_flight * order.max_partials();
}
int round_buffers(const Hierarchy& h, const ReductionOrder& order) noexcept {
  int partials = 0;
  for (int node = 0; node < h.nodes(); ++node) partials += order.partials(node);
  return partials * h.max_lanes();
}

class ReduceToOwnersAlgorithm {
 public:
  ReduceToOwnersAlgorithm(Hierarchy& hierarchy, const NodeVectors& input, const Reduction& reduction,
                          const ReductionOrder& order, ResultSink& sink, PipelineSettings pipeline)
      : h_(hierarchy),
        input_(input),
        reduction_(reduction),
        order_(order),
        sink_(sink),
        unit_(reduction.element_bytes),
        piece_(combine_piece(hierarchy, order, reduction.piece_unit(), pipeline)),
        in_flight_(pipeline.in_flight * (hierarchy.own_lanes().last - hierarchy.own_lanes().first)),
        round_(round_buffers(hierarchy, order)),
        kept_(static_cast<std::size_t>(hierarchy.own_lanes().last - hierarchy.own_lanes().first)),
        sent_(static_cast<std::size_t>(sent_buffers(hierarchy, order, pipeline))),
        received_(2 * static_cast<std::size_t>(round_)) {
    for (int node = 0; node < h_.nodes(); ++node)
      for (int lane = 0; lane < h_.lanes(); ++lane)
        pieces_ = std::max(pieces_, pieces_in(lane_of(node, lane).length(), piece_));
    int before = 0;
    for (int node = 0; node < h_.nodes(); ++node) {
      before_.push_back(before);
      before += order_.partials(node);
    }
    all_partials_ = before;
  }

  Task run() {
    std::vector<Task> tasks;
    if (h_.local_ranks() > 1) tasks.push_back(give());
    tasks.push_back(contribute());
    tasks.push_back(finish());
    co_await all_of(tasks);
  }

 private:
  Range lane_of(int node, int lane) const noexcept { return input_.lane(node, lane, h_.lanes(), unit_); }
  /// Ordered by round (piece), then step, then lane; the same on all ranks of a node. Step N is the node itself.
  struct CombineStep {
    std::int64_t piece = 0;
    int step = 1, lane = -1;
    int node = 0;
    Range range;
  };
  bool next(CombineStep* turn) const noexcept {
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
      if (turn->range.length() > 0) return true;
    }
  }

  /// Passes this rank's data in each lane to the carrier of that lane.
  Task give() {
    for (CombineStep turn; next(&turn);) {
      const int reader = h_.local_carrier(turn.lane);
      if (reader == h_.local_rank()) continue;
      co_await until([&] { return h_.channels().vacant(ChannelKind::own); });
      h_.channels().fill(ChannelKind::own, input_, turn.node, turn.range);
      h_.channels().publish(ChannelKind::own, reader);
    }
  }

  std::byte* sent_buffer(std::int64_t index) noexcept { return h_.staging() + index * piece_; }
  /// The buffer of a node's partial result in a round. `own_lane`: counted from this rank's first lane.
  std::size_t received_index(std::int64_t round, int own_lane, int node, int partial) const noexcept {
    return static_cast<std::size_t>(round % 2 * round_ + own_lane * all_partials_ +
                                    before_[static_cast<std::size_t>(node)] + partial);
  }
  std::byte* received_buffer(std::size_t index) noexcept {
    return h_.staging() + (static_cast<std::int64_t>(sent_.size() + index)) * piece_;
  }

  /// Starts to receive what other nodes send in a round.
  void post(std::int64_t round) noexcept {
    const Lanes own = h_.own_lanes();
    for (int step = 1; step < h_.nodes(); ++step) {
      const int from = (h_.node() + h_.nodes() - step) % h_.nodes();
      for (int lane = own.first; lane < own.last; ++lane) {
        const Range range = piece_of(lane_of(h_.node(), lane), round, piece_);
        for (int partial = 0; range.length() > 0 && partial < order_.partials(from); ++partial) {
          const std::size_t index = received_index(round, lane - own.first, from, partial);
          received_[index] = h_.transport().receive(h_.carrier(from, lane), received_buffer(index), wire_bytes(range));
        }
      }
    }
  }

  /// Reduces the data of this node in each lane that this rank carries, and sends it to its owner. Results that this
  /// node owns are kept for finish().
  Task contribute() {
    const Lanes own = h_.own_lanes();
    const int partials = order_.partials(h_.node());
    std::int64_t sends = 0;
    for (CombineStep turn; next(&turn);) {
      const int carrier = h_.local_carrier(turn.lane);
      if (carrier != h_.local_rank()) {
        for (int q = 0; q < h_.local_ranks(); ++q)
          if (q != h_.local_rank() && q != carrier) h_.channels().skip(q, ChannelKind::own);
        continue;
      }
      const bool sent = turn.node != h_.node();
      const std::int64_t slot = sends % in_flight_ * partials;
      if (sent) {
        for (int i = 0; sends >= in_flight_ && i < partials; ++i)
          co_await until([&] { return h_.transport().done(sent_[static_cast<std::size_t>(slot + i)]); });
      } else {
        co_await until([&] { return finished_ + 2 > turn.piece; });
      }
      co_await until([&] {
        for (int q = 0; q < h_.local_ranks(); ++q)
          if (q != h_.local_rank() && !h_.channels().arrived(q, ChannelKind::own)) return false;
        return true;
      });
      for (int i = 0; i < partials; ++i)
        if (sent)
          combine_to_send(turn, i, sent_buffer(slot + i));
        else
          combine_here(turn, i, received_buffer(received_index(turn.piece, turn.lane - own.first, h_.node(), i)));
      for (int q = 0; q < h_.local_ranks(); ++q)
        if (q != h_.local_rank()) h_.channels().take(q, ChannelKind::own);
      if (!sent) {
        kept_[static_cast<std::size_t>(turn.lane - own.first)] = turn.piece + 1;
        continue;
      }
      for (int i = 0; i < partials; ++i)
        sent_[static_cast<std::size_t>(slot + i)] =
            h_.transport().send(h_.carrier(turn.node, turn.lane), sent_buffer(slot + i), wire_bytes(turn.range));
      ++sends;
    }
    for (std::int64_t i = std::max<std::int64_t>(0, sends - in_flight_); i < sends; ++i)
      for (int k = 0; k < partials; ++k)
        co_await until(
            [&] { return h_.transport().done(sent_[static_cast<std::size_t>(i % in_flight_ * partials + k)]); });
  }

  /// Reduces the contributions of all nodes to this node's lanes, and delivers the result.
  Task finish() {
    const Lanes own = h_.own_lanes();
    for (std::int64_t posted = 0; finished_ < pieces_; ++finished_) {
      for (; posted < std::min(finished_ + 2, pieces_); ++posted) post(posted);
      for (int lane = own.first; lane < own.last; ++lane) {
        const Range range = piece_of(lane_of(h_.node(), lane), finished_, piece_);
        if (range.length() == 0) continue;
        for (int node = 0; node < h_.nodes(); ++node)
          for (int i = 0; node != h_.node() && i < order_.partials(node); ++i)
            co_await until(
                [&] { return h_.transport().done(received_[received_index(finished_, lane - own.first, node, i)]); });
        co_await until([&] { return kept_[static_cast<std::size_t>(lane - own.first)] > finished_; });
        co_await sink_.deliver(lane, range, combine_all(range.length(), lane - own.first));
      }
    }
  }

  std::int64_t wire_bytes(Range range) const noexcept {
    return reduction_.coding ? reduction_.coding->coded_bytes(range.length()) : range.length();
  }
  /// Writes a partial result in its form for the network. The codes are computed from this node's complete result in
  /// full precision.
  void combine_to_send(const CombineStep& turn, int partial, std::byte* into) noexcept {
    if (!reduction_.coding) return combine_here(turn, partial, into);
    std::byte* plain = depth_buffer(2);
    combine_here(turn, partial, plain);
    reduction_.coding->encode(plain, turn.range.length(), into);
  }

  /// Reduces the data of the ranks of this node. All pieces of the neighbors must have arrived.
  void combine_here(const CombineStep& turn, int partial, std::byte* into) noexcept {
    if (order_.tree().ordered()) {
      const Subtree& tree = order_.partial(h_.node(), partial);
      combine_tree(turn, tree.first, tree.last, into);
      return;
    }
    input_.read(turn.node, turn.range, into);
    for (int q = 0; q < h_.local_ranks(); ++q)
      if (q != h_.local_rank())
        reduction_.combine(h_.channels().arrived(q, ChannelKind::own), into, turn.range.length());
  }
  /// Reduces the right half into `into`. If the left half is a single neighbor, it is read from that neighbor's slot,
  /// else it is reduced into depth_buffer().
  void combine_tree(const CombineStep& turn, int first, int last, std::byte* into) noexcept {
    if (last - first == 1) {
      if (first == h_.rank())
        input_.read(turn.node, turn.range, into);
      else
        copy_bytes(into, h_.channels().arrived(h_.topology().local_rank_of(first), ChannelKind::own),
                   static_cast<std::size_t>(turn.range.length()));
      return;
    }
    const int middle = order_.tree().cut(first, last);
    combine_tree(turn, middle, last, into);
    if (middle - first == 1 && first != h_.rank()) {
      reduction_.combine(h_.channels().arrived(h_.topology().local_rank_of(first), ChannelKind::own), into,
                         turn.range.length());
      return;
    }
    std::byte* left = depth_buffer(last - first);
    combine_tree(turn, first, middle, left);
    reduction_.combine(left, into, turn.range.length());
  }
  /// One buffer for each depth of a tree, at the end of staging. The left half of a tree has a smaller depth than the
  /// tree, so no buffer is used twice at a time.
  std::byte* depth_buffer(int size) noexcept {
    int depth = 1;
    while ((1 << depth) < size) ++depth;
    return h_.staging() + Hierarchy::staging_bytes - depth * piece_;
  }

  /// Reduces the partial results of all nodes. Returns the address of the result.
  const std::byte* combine_all(std::int64_t bytes, int own_lane) noexcept {
    if (order_.tree().ordered()) {
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
  /// The tree is walked from left to right, so the partial results of each node are used in their order.
  std::byte* combine_partials(std::int64_t bytes, int own_lane, int first, int last) noexcept {
    const int node = h_.topology().node_of(first);
    const int index = next_partial_[static_cast<std::size_t>(node)];
    const Subtree* subtree = index < order_.partials(node) ? &order_.partial(node, index) : nullptr;
    if (subtree && subtree->first == first && subtree->last == last) {
      ++next_partial_[static_cast<std::size_t>(node)];
      return received_buffer(received_index(finished_, own_lane, node, index));
    }
    const int middle = order_.tree().cut(first, last);
    const std::byte* left = combine_partials(bytes, own_lane, first, middle);
    std::byte* right = combine_partials(bytes, own_lane, middle, last);
    reduction_.combine(left, right, bytes);
    return right;
  }

  Hierarchy& h_;
  const NodeVectors& input_;
  const Reduction& reduction_;
  const ReductionOrder& order_;
  ResultSink& sink_;
  const std::int64_t unit_, piece_;
  const int in_flight_;  ///< sends, of all lanes together
  const int round_;      ///< buffers of a round
  int all_partials_ = 0;
  std::int64_t pieces_ = 0;         ///< rounds of the longest lane
  std::int64_t finished_ = 0;       ///< rounds delivered
  std::vector<std::int64_t> kept_;  ///< by own lane: rounds in which this node's part is reduced
  std::vector<int> before_;         ///< by node: partial results of the nodes before it
  std::vector<Transfer> sent_;
  std::vector<Transfer> received_;
  std::vector<int> next_partial_;
};

}  // namespace

std::int64_t combine_piece(const Hierarchy& h, const ReductionOrder& order, std::int64_t unit,
                           PipelineSettings pipeline) noexcept {
  int depths = 1;
  while ((1 << depths) < h.topology().ranks()) ++depths;
  const std::int64_t available =
      Hierarchy::staging_bytes / (sent_buffers(h, order, pipeline) + 2 * round_buffers(h, order) + depths);
  const std::int64_t most = std::min(available, h.channels().slot_bytes());
  return unit > most ? 0 : std::clamp(pipeline.piece, unit, most) / unit * unit;
}

Task reduce_to_owners(Hierarchy& hierarchy, const NodeVectors& input, const Reduction& reduction,
                      const ReductionOrder& order, ResultSink& sink, PipelineSettings pipeline) {
  ReduceToOwnersAlgorithm work(hierarchy, input, reduction, order, sink, pipeline);
  co_await work.run();
}

}  // namespace bestride::inline collectives
