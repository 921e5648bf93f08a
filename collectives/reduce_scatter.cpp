// SPDX-License-Identifier: Apache-2.0
#include "collectives/reduce_scatter.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "collectives/pieces.hpp"
#include "collectives/share.hpp"

namespace bestride {
namespace {

/// Hands each part of a result to the rank of this node it belongs to.
class ToOwners final : public ResultSink {
 public:
  ToOwners(Hierarchy& hierarchy, const NodeStrings& strings, const NodeStrings& output, std::int64_t piece, std::int64_t unit)
      : h_(hierarchy), strings_(strings), output_(output), piece_(piece), unit_(unit) {}

  Strand deliver(int, Range range, const std::byte* data) override {
    for (int owner = 0; owner < h_.local_ranks(); ++owner) {
      const Range met = meets(range, owner);
      if (met.bytes() <= 0) continue;
      const std::byte* part = data + (met.first - range.first);
      if (owner == h_.local_rank()) {
        keep(met, part);
        continue;
      }
      co_await until([&] { return h_.channels().vacant(Stream::arrived); });
      std::memcpy(h_.channels().slot(Stream::arrived), part, static_cast<std::size_t>(met.bytes()));
      h_.channels().publish(Stream::arrived, owner);
    }
  }

  /// What a neighbour hands this rank.
  Strand take(int from) {
    for (LanePieces piece(strings_, {h_.lanes(), piece_, unit_}, h_.node(), lanes_of(from, h_.local_ranks(), h_.lanes())); piece.next();)
      for (int owner = 0; owner < h_.local_ranks(); ++owner) {
        const Range met = meets(piece.range, owner);
        if (met.bytes() <= 0 || owner == from) continue;
        if (owner != h_.local_rank()) {
          h_.channels().skip(from, Stream::arrived);
          continue;
        }
        co_await until([&] { return h_.channels().arrived(from, Stream::arrived) != nullptr; });
        keep(met, h_.channels().arrived(from, Stream::arrived));
        h_.channels().take(from, Stream::arrived);
      }
  }

 private:
  Range meets(Range range, int owner) const noexcept {
    const Range part = strings_.part(h_.node(), owner);
    return {std::max(range.first, part.first), std::min(range.last, part.last)};
  }
  void keep(Range range, const std::byte* data) const noexcept { output_.write(h_.node(), range, data); }

  Hierarchy& h_;
  const NodeStrings& strings_;
  const NodeStrings& output_;
  const std::int64_t piece_, unit_;
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
  ToOwners sink(hierarchy, input, output, combine_piece(hierarchy, order, reduction.piece_unit(), pace), reduction.element_bytes);
  std::vector<Strand> strands;
  strands.push_back(combine(hierarchy, input, reduction, order, sink, pace));
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
