// SPDX-License-Identifier: Apache-2.0
#include "collectives/reduce_scatter.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "collectives/pieces.hpp"
#include "collectives/relayed_strings.hpp"
#include "collectives/relays.hpp"
#include "collectives/share.hpp"

namespace bestride {
namespace {

/// A difference between nodes for which nothing is relayed.
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// Hands each part of a result to the rank it belongs to: on this node through the channels, on another over the wire's second line, by
/// which it does not matter what else goes to that rank.
class ToOwners final : public ResultSink {
 public:
  /// `combined`: of the strings; what is combined.
  ToOwners(Hierarchy& hierarchy, const NodeStrings& strings, const RelayPlan& plan, const RelayedStrings& combined, const NodeStrings& output,
           std::int64_t piece, std::int64_t unit)
      : h_(hierarchy), strings_(strings), plan_(plan), combined_(combined), output_(output), cut_{hierarchy.lanes(), piece, unit} {}

  Strand deliver(int, Range range, const std::byte* data) override {
    for (std::size_t i = 0; i < combined_.stretches(h_.node()); ++i) {
      const RelayedStrings::Met met = combined_.meet(h_.node(), i, range);
      const auto owners = h_.topology().ranks_on(met.node);
      for (int owner = 0; owner < static_cast<int>(owners.size()); ++owner) {
        const Range own = common(met.range, strings_.part(met.node, owner));
        if (own.bytes() <= 0) continue;
        const std::byte* part = data + met.offset + (own.first - met.range.first);
        if (met.node != h_.node()) {
          Transfer sent = h_.wire().send(owners[static_cast<std::size_t>(owner)], part, own.bytes(), Line::second);
          co_await until([&] { return h_.wire().done(sent); });
        } else if (owner == h_.local_rank()) {
          output_.write(h_.node(), own, part);
        } else {
          co_await until([&] { return h_.channels().vacant(Stream::arrived); });
          std::memcpy(h_.channels().slot(Stream::arrived), part, static_cast<std::size_t>(own.bytes()));
          h_.channels().publish(Stream::arrived, owner);
        }
      }
    }
  }

  /// What a neighbour hands this rank.
  Strand take(int from) {
    for (LanePieces piece(combined_, cut_, h_.node(), lanes_of(from, h_.local_ranks(), h_.lanes())); piece.next();) {
      const Range straight = combined_.meet(h_.node(), 0, piece.range).range;
      for (int owner = 0; owner < h_.local_ranks(); ++owner) {
        const Range own = common(straight, strings_.part(h_.node(), owner));
        if (own.bytes() <= 0 || owner == from) continue;
        if (owner != h_.local_rank()) {
          h_.channels().skip(from, Stream::arrived);
          continue;
        }
        co_await until([&] { return h_.channels().arrived(from, Stream::arrived) != nullptr; });
        output_.write(h_.node(), own, h_.channels().arrived(from, Stream::arrived));
        h_.channels().take(from, Stream::arrived);
      }
    }
  }

  /// What relays send this rank.
  ///
  /// Nobody waits for ever: of the relays' pieces of one round (those of combine()) that have not come to their owners, the one of the first relay
  /// and its first lane can always be sent, and its owner waits for no other; and a round's pieces wait for no later round.
  Strand receive() {
    constexpr int in_flight = 2;
    static_assert(in_flight * (Hierarchy::staging_bytes / 8) <= Hierarchy::kept_bytes, "combine() has room for eight pieces or more");
    struct Posted {
      Transfer transfer;
      std::byte* place = nullptr;
      bool staged = false;
    } posted[in_flight];
    std::int64_t first = 0, last = 0;
    Relayed parts(*this), ahead(*this);
    for (; parts.next(); ++first) {
      for (; last - first < in_flight && ahead.next(); ++last) {
        Posted& place = posted[last % in_flight];
        std::byte* direct = output_.at(h_.node(), ahead.range);
        place.staged = !direct;
        place.place = direct ? direct : h_.kept() + last % in_flight * cut_.piece;
        place.transfer = h_.wire().receive(ahead.from, place.place, ahead.range.bytes(), Line::second);
      }
      Posted& place = posted[first % in_flight];
      co_await until([&] { return h_.wire().done(place.transfer); });
      if (place.staged) output_.write(h_.node(), parts.range, place.place);
    }
  }

 private:
  /// The parts of this rank's result that come from relays: round after round; of a round, relay after relay, lane after lane.
  class Relayed {
   public:
    explicit Relayed(const ToOwners& to) : to_(to), stretches_(to.plan_.of(to.h_.node())), own_(to.strings_.part(to.h_.node(), to.h_.local_rank())) {
      stretches_ = stretches_.first(stretches_.size() - 1);
      for (const Stretch& stretch : stretches_) rounds_ = std::max(rounds_, pieces_in(lane(stretch.relay, 0).bytes(), to_.cut_.piece));
    }
    bool next() noexcept {
      for (; round_ < rounds_; ++round_, stretch_ = 0)
        for (; stretch_ < stretches_.size(); ++stretch_, lane_ = 0)
          while (lane_ < to_.cut_.lanes) {
            const Stretch& stretch = stretches_[stretch_];
            from = to_.h_.carrier(stretch.relay, lane_);
            const Range piece = piece_of(lane(stretch.relay, lane_++), round_, to_.cut_.piece);
            range = common(to_.combined_.meet(stretch.relay, static_cast<std::size_t>(stretch.place) + 1, piece).range, own_);
            if (range.bytes() > 0) return true;
          }
      return false;
    }
    int from = 0;
    Range range;  ///< of the own node's string

   private:
    Range lane(int node, int index) const noexcept { return to_.combined_.lane(node, index, to_.cut_.lanes, to_.cut_.unit); }

    const ToOwners& to_;
    std::span<const Stretch> stretches_;
    Range own_;
    std::int64_t rounds_ = 0, round_ = 0;
    std::size_t stretch_ = 0;
    int lane_ = 0;
  };

  Hierarchy& h_;
  const NodeStrings& strings_;
  const RelayPlan& plan_;
  const RelayedStrings& combined_;
  const NodeStrings& output_;
  const Cut cut_;
};

/// Puts the results into a buffer of the input's shape.
class IntoStrings final : public ResultSink {
 public:
  IntoStrings(Hierarchy& hierarchy, const NodeStrings& output) : h_(hierarchy), output_(output) {}
  Strand deliver(int, Range range, const std::byte* data) override {
    output_.write(h_.node(), range, data);
    co_return;
  }

 private:
  Hierarchy& h_;
  const NodeStrings& output_;
};

}  // namespace

Strand reduce_scatter(Hierarchy& hierarchy, const Operands& input, Operand output, const Reduction& reduction, const ReductionOrder& order, Pace pace) {
  const SingleBlock own(input, hierarchy.rank(), output);
  const RankBlocks strings(hierarchy.topology(), input), result(hierarchy.topology(), own);
  co_await reduce_scatter(hierarchy, strings, result, reduction, order, pace);
}

Strand reduce_scatter(Hierarchy& hierarchy, const NodeStrings& input, const NodeStrings& output, const Reduction& reduction,
                      const ReductionOrder& order, Pace pace) {
  // A result that is moved on is no code, and it would be one of several partial results.
  const bool relayed = !reduction.coding && order.most_partials() == 1;
  const RelayPlan plan(bytes_of(input, hierarchy.nodes()), reduction.element_bytes, relayed ? pace.uneven : never, RelayPlan::Copies::of_all);
  const RelayedStrings combined(input, plan, hierarchy.nodes());
  if (!plan.even()) {
    const std::vector<std::int64_t> bytes = bytes_of(combined, hierarchy.nodes());
    pace = pace.finer(*std::max_element(bytes.begin(), bytes.end()) / hierarchy.lanes(), 32);
  }
  ToOwners sink(hierarchy, input, plan, combined, output, combine_piece(hierarchy, order, reduction.piece_unit(), pace), reduction.element_bytes);
  std::vector<Strand> strands;
  strands.push_back(combine(hierarchy, combined, reduction, order, sink, pace));
  strands.push_back(sink.receive());
  for (int q = 0; q < hierarchy.local_ranks(); ++q)
    if (q != hierarchy.local_rank()) strands.push_back(sink.take(q));
  co_await all_of(strands);
}

Strand reduce_to_lanes(Hierarchy& hierarchy, const NodeStrings& input, const NodeStrings& output, const Reduction& reduction,
                       const ReductionOrder& order, Pace pace) {
  IntoStrings sink(hierarchy, output);
  co_await combine(hierarchy, input, reduction, order, sink, pace);
}

Strand allreduce(Hierarchy& hierarchy, Operand input, Operand output, const Reduction& reduction, const ReductionOrder& order, Pace pace) {
  const EvenParts given(hierarchy.topology(), input, reduction.element_bytes), result(hierarchy.topology(), output, reduction.element_bytes);
  co_await reduce_to_lanes(hierarchy, given, result, reduction, order, pace);
  co_await share(hierarchy, result, pace, reduction.element_bytes);
}

}  // namespace bestride
