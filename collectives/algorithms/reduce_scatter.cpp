// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/reduce_scatter.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "collectives/algorithms/allgather.hpp"
#include "collectives/core/pieces.hpp"
#include "collectives/core/relayed_vectors.hpp"
#include "collectives/core/relays.hpp"

namespace bestride::inline collectives {
namespace {

/// A threshold that is never reached: nothing is relayed.
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// Passes each part of a result to the rank that owns it: on this node through the channels, to another node over the
/// second virtual channel of the transport, which is independent of other messages to that rank.
class ResultDistributor final : public ResultSink {
 public:
  /// `combined`: the vectors that are reduced, made from `vectors`.
  ResultDistributor(Hierarchy& hierarchy, const NodeVectors& vectors, const RelayPlan& plan,
                    const RelayedVectors& combined, const NodeVectors& output, std::int64_t piece, std::int64_t unit)
      : h_(hierarchy),
        vectors_(vectors),
        plan_(plan),
        combined_(combined),
        output_(output),
        cut_{hierarchy.lanes(), piece, unit} {}

  Task deliver(int, Range range, const std::byte* data) override {
    for (std::size_t i = 0; i < combined_.relayed_ranges(h_.node()); ++i) {
      const RelayedVectors::Overlap met = combined_.overlap(h_.node(), i, range);
      const auto owners = h_.topology().ranks_on(met.node);
      for (int owner = 0; owner < static_cast<int>(owners.size()); ++owner) {
        const Range own = intersection(met.range, vectors_.part(met.node, owner));
        if (own.length() <= 0) continue;
        const std::byte* part = data + met.offset + (own.first - met.range.first);
        if (met.node != h_.node()) {
          Transfer sent =
              h_.transport().send(owners[static_cast<std::size_t>(owner)], part, own.length(), VirtualChannel::second);
          co_await until([&] { return h_.transport().done(sent); });
        } else if (owner == h_.local_rank()) {
          output_.write(h_.node(), own, part);
        } else {
          co_await until([&] { return h_.channels().vacant(ChannelKind::arrived); });
          h_.channels().fill(ChannelKind::arrived, part, own.length());
          h_.channels().publish(ChannelKind::arrived, owner);
        }
      }
    }
  }

  /// Takes the results that a neighbor passes to this rank.
  Task take(int from) {
    for (LanePieces piece(combined_, cut_, h_.node(), lanes_of(from, h_.local_ranks(), h_.lanes())); piece.next();) {
      const Range combined = combined_.overlap(h_.node(), 0, piece.range).range;
      for (int owner = 0; owner < h_.local_ranks(); ++owner) {
        const Range own = intersection(combined, vectors_.part(h_.node(), owner));
        if (own.length() <= 0 || owner == from) continue;
        if (owner != h_.local_rank()) {
          h_.channels().skip(from, ChannelKind::arrived);
          continue;
        }
        co_await until([&] { return h_.channels().arrived(from, ChannelKind::arrived) != nullptr; });
        output_.write(h_.node(), own, h_.channels().arrived(from, ChannelKind::arrived));
        h_.channels().take(from, ChannelKind::arrived);
      }
    }
  }

  /// Receives the results that relays send to this rank.
  ///
  /// It can't deadlock. Of the pieces that relays have yet to deliver in one round of reduce_to_owners(), the first
  /// one, in the order of relays and then lanes, can always be sent, and its owner waits for no other piece. No piece
  /// waits for a later round.
  Task receive() {
    constexpr int in_flight = 2;
    static_assert(in_flight * (Hierarchy::staging_bytes / 8) <= Hierarchy::intermediate_bytes,
                  "reduce_to_owners() has room for eight pieces or more");
    struct PendingReceive {
      Transfer transfer;
      std::byte* memory = nullptr;
      bool staged = false;
    } posted[in_flight];
    std::int64_t first = 0, last = 0;
    Relayed parts(*this), ahead(*this);
    for (; parts.next(); ++first) {
      for (; last - first < in_flight && ahead.next(); ++last) {
        PendingReceive& pending = posted[last % in_flight];
        std::byte* direct = output_.at(h_.node(), ahead.range);
        pending.staged = !direct;
        pending.memory = direct ? direct : h_.intermediate() + last % in_flight * cut_.piece;
        pending.transfer =
            h_.transport().receive(ahead.from, pending.memory, ahead.range.length(), VirtualChannel::second);
      }
      PendingReceive& pending = posted[first % in_flight];
      co_await until([&] { return h_.transport().done(pending.transfer); });
      if (pending.staged) output_.write(h_.node(), parts.range, pending.memory);
    }
  }

 private:
  /// The parts of this rank's result that come from relays, ordered by round, then relay, then lane.
  class Relayed {
   public:
    explicit Relayed(const ResultDistributor& to)
        : to_(to),
          relayed_ranges_(to.plan_.of(to.h_.node())),
          own_(to.vectors_.part(to.h_.node(), to.h_.local_rank())) {
      relayed_ranges_ = relayed_ranges_.first(relayed_ranges_.size() - 1);
      for (const RelayedRange& relayed_range : relayed_ranges_)
        rounds_ = std::max(rounds_, pieces_in(lane(relayed_range.relay, 0).length(), to_.cut_.piece));
    }
    bool next() noexcept {
      for (; round_ < rounds_; ++round_, relayed_range_ = 0)
        for (; relayed_range_ < relayed_ranges_.size(); ++relayed_range_, lane_ = 0)
          while (lane_ < to_.cut_.lanes) {
            const RelayedRange& relayed_range = relayed_ranges_[relayed_range_];
            from = to_.h_.carrier(relayed_range.relay, lane_);
            const Range piece = piece_of(lane(relayed_range.relay, lane_++), round_, to_.cut_.piece);
            range = intersection(
                to_.combined_.overlap(relayed_range.relay, static_cast<std::size_t>(relayed_range.index) + 1, piece)
                    .range,
                own_);
            if (range.length() > 0) return true;
          }
      return false;
    }
    int from = 0;
    Range range;  ///< of the own node's vector

   private:
    Range lane(int node, int index) const noexcept {
      return to_.combined_.lane(node, index, to_.cut_.lanes, to_.cut_.unit);
    }

    const ResultDistributor& to_;
    std::span<const RelayedRange> relayed_ranges_;
    Range own_;
    std::int64_t rounds_ = 0, round_ = 0;
    std::size_t relayed_range_ = 0;
    int lane_ = 0;
  };

  Hierarchy& h_;
  const NodeVectors& vectors_;
  const RelayPlan& plan_;
  const RelayedVectors& combined_;
  const NodeVectors& output_;
  const PieceLayout cut_;
};

/// Writes the results to a buffer of the input's shape.
class IntoVectors final : public ResultSink {
 public:
  IntoVectors(Hierarchy& hierarchy, const NodeVectors& output) : h_(hierarchy), output_(output) {}
  Task deliver(int, Range range, const std::byte* data) override {
    output_.write(h_.node(), range, data);
    co_return;
  }

 private:
  Hierarchy& h_;
  const NodeVectors& output_;
};

}  // namespace

Task reduce_scatter(Hierarchy& hierarchy, const Operands& input, Operand output, const Reduction& reduction,
                    const ReductionOrder& order, PipelineSettings pipeline) {
  const SingleBlock own(input, hierarchy.rank(), output);
  const RankBlocks vectors(hierarchy.topology(), input), result(hierarchy.topology(), own);
  co_await reduce_scatter(hierarchy, vectors, result, reduction, order, pipeline);
}

Task reduce_scatter(Hierarchy& hierarchy, const NodeVectors& input, const NodeVectors& output,
                    const Reduction& reduction, const ReductionOrder& order, PipelineSettings pipeline) {
  // A relayed result is not coded, and with several partial results per node it would be only one of them.
  const bool relayed = !reduction.coding && order.max_partials() == 1;
  const RelayPlan plan(bytes_of(input, hierarchy.nodes()), reduction.element_bytes, relayed ? pipeline.uneven : never,
                       RelayPlan::Copies::of_all);
  const RelayedVectors combined(input, plan, hierarchy.nodes());
  if (!plan.even()) {
    const std::vector<std::int64_t> bytes = bytes_of(combined, hierarchy.nodes());
    pipeline = pipeline.finer(*std::max_element(bytes.begin(), bytes.end()) / hierarchy.lanes(), 32);
  }
  ResultDistributor sink(hierarchy, input, plan, combined, output,
                         combine_piece(hierarchy, order, reduction.piece_unit(), pipeline), reduction.element_bytes);
  std::vector<Task> tasks;
  tasks.push_back(reduce_to_owners(hierarchy, combined, reduction, order, sink, pipeline));
  tasks.push_back(sink.receive());
  for (int q = 0; q < hierarchy.local_ranks(); ++q)
    if (q != hierarchy.local_rank()) tasks.push_back(sink.take(q));
  co_await all_of(tasks);
}

Task reduce_to_lanes(Hierarchy& hierarchy, const NodeVectors& input, const NodeVectors& output,
                     const Reduction& reduction, const ReductionOrder& order, PipelineSettings pipeline) {
  IntoVectors sink(hierarchy, output);
  co_await reduce_to_owners(hierarchy, input, reduction, order, sink, pipeline);
}

Task allreduce(Hierarchy& hierarchy, Operand input, Operand output, const Reduction& reduction,
               const ReductionOrder& order, PipelineSettings pipeline) {
  const EvenParts given(hierarchy.topology(), input, reduction.element_bytes),
      result(hierarchy.topology(), output, reduction.element_bytes);
  co_await reduce_to_lanes(hierarchy, given, result, reduction, order, pipeline);
  co_await allgather(hierarchy, result, pipeline, reduction.element_bytes);
}

}  // namespace bestride::inline collectives
