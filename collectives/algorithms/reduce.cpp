// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/reduce.hpp"

#include <algorithm>
#include <cstring>

#include "base/copy.hpp"
#include "collectives/algorithms/gather.hpp"

namespace bestride::inline collectives {
namespace {

/// The result of a segment. On the root it is in the root's buffer; elsewhere it is the lanes of this rank, in the
/// memory of Hierarchy::intermediate().
class SegmentResult final : public NodeVectors, public ResultSink {
 public:
  /// `shape`: how the segment is cut. `output`: nullptr except on the root. Both outlive this object.
  SegmentResult(Hierarchy& hierarchy, const NodeVectors& shape, const NodeVectors* output) noexcept
      : h_(hierarchy), shape_(shape), output_(output) {}

  std::int64_t bytes(int node) const noexcept override { return shape_.bytes(node); }
  Range part(int node, int local_rank) const noexcept override { return shape_.part(node, local_rank); }
  std::byte* at(int node, Range range) const noexcept override {
    return output_ ? output_->at(node, range) : kept(range);
  }
  void read(int node, Range range, void* to) const noexcept override {
    if (output_)
      output_->read(node, range, to);
    else
      copy_bytes(to, kept(range), static_cast<std::size_t>(range.length()));
  }
  void write(int node, Range range, const void* from) const noexcept override {
    if (output_)
      output_->write(node, range, from);
    else
      copy_bytes(kept(range), from, static_cast<std::size_t>(range.length()));
  }
  Task deliver(int, Range range, const std::byte* data) override {
    write(h_.node(), range, data);
    co_return;
  }

 private:
  std::byte* kept(Range range) const noexcept {
    return h_.intermediate() + (range.first - part(h_.node(), h_.local_rank()).first);
  }

  Hierarchy& h_;
  const NodeVectors& shape_;
  const NodeVectors* const output_;
};

}  // namespace

std::int64_t reduce_segment(const Hierarchy& h, std::int64_t element_bytes) noexcept {
  return Hierarchy::intermediate_bytes / h.max_lanes() / element_bytes * element_bytes * h.lanes() * h.nodes();
}

Task reduce(Hierarchy& hierarchy, Operand input, Operand output, int root, const Reduction& reduction,
            const ReductionOrder& order, PipelineSettings pipeline, std::int64_t segment) {
  for (std::int64_t first = 0; first < input.bytes(); first += segment) {
    const Range range{first, std::min(input.bytes(), first + segment)};
    const EvenParts given(hierarchy.topology(), input, reduction.element_bytes, range);
    const EvenParts result(hierarchy.topology(), output, reduction.element_bytes, range);
    SegmentResult kept(hierarchy, given, hierarchy.rank() == root ? &result : nullptr);
    co_await reduce_to_owners(hierarchy, given, reduction, order, kept, pipeline);
    co_await gather(hierarchy, kept, root, pipeline, reduction.element_bytes);
  }
}

}  // namespace bestride::inline collectives
