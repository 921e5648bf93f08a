// SPDX-License-Identifier: Apache-2.0
#include "collectives/quantized/quantized_collectives.hpp"

#include <optional>
#include <vector>

#include "collectives/algorithms/allgather.hpp"
#include "collectives/algorithms/reduce_scatter.hpp"
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/pieces.hpp"
#include "collectives/quantized/coded_run.hpp"
#include "collectives/quantized/operand_coder.hpp"
#include "collectives/quantized/quantized_sum.hpp"
#include "kernels/quantize/quantize.hpp"

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t room_bytes = Hierarchy::intermediate_bytes / 2;
static_assert(max_quantized_ranks * (256 + 8) <= room_bytes, "one block a rank");

/// Forwards the pieces that allgather() reports to CodeObserver, rank by rank, with positions among the codes of whole
/// blocks.
class RunObserver final : public PieceObserver {
 public:
  RunObserver(const Hierarchy& hierarchy, const CodedRun& run, const RankBlocks& vectors, CodeObserver& to) noexcept
      : h_(hierarchy), run_(run), vectors_(vectors), to_(to) {}
  void keep(int node, Range range, const std::byte* data) noexcept override {
    int local = 0;
    for (const int rank : h_.topology().ranks_on(node)) {
      const Range part = vectors_.part(node, local++), met = intersection(range, part);
      if (met.length() <= 0) continue;
      const std::int64_t begin = run_.begin() - part.first;
      to_.keep(rank, {begin + met.first, begin + met.last}, data + (met.first - range.first));
    }
  }

 private:
  const Hierarchy& h_;
  const CodedRun& run_;
  const RankBlocks& vectors_;
  CodeObserver& to_;
};

/// By rank: its lanes of its node's part.
std::vector<Range> sum_parts(const Topology& topology, std::int64_t bytes, NumberFormat format) {
  const std::int64_t number = number_bytes(format);
  const EvenParts vectors(topology, Operand(nullptr, bytes), number);
  std::vector<Range> parts(static_cast<std::size_t>(topology.ranks()));
  for (int node = 0; node < topology.nodes(); ++node) {
    const std::int64_t begin = part_of(bytes, topology.nodes(), node, number).first;
    int local = 0;
    for (const int rank : topology.ranks_on(node)) {
      const Range part = vectors.part(node, local++);
      parts[static_cast<std::size_t>(rank)] = {begin + part.first, begin + part.last};
    }
  }
  return parts;
}

/// The parts of a vector that the ranks have after reduce_to_owners().
class EvenBlocks final : public Operands {
 public:
  /// `whole` is contiguous. May throw std::bad_alloc.
  EvenBlocks(const Topology& topology, Operand whole, NumberFormat format)
      : whole_(whole), parts_(sum_parts(topology, whole.bytes(), format)) {}
  Operand of(int rank) const noexcept override {
    return {whole_.at(parts_[static_cast<std::size_t>(rank)].first), bytes(rank)};
  }
  std::int64_t bytes(int rank) const noexcept override { return parts_[static_cast<std::size_t>(rank)].length(); }

 private:
  const Operand whole_;
  const std::vector<Range> parts_;
};

bool is_short(NumberFormat format) noexcept { return number_bytes(format) == 2; }
NumberFormat accumulator_of(NumberFormat format) noexcept { return is_short(format) ? NumberFormat::float32 : format; }

}  // namespace

Task quantized_allgather(Hierarchy& h, Operand own, const Operands& all, NumberFormat format, CodeBits bits,
                         PipelineSettings pipeline, CodeObserver* kept) {
  const OperandCoder coder(own, all, format, bits, h.staging());
  std::optional<CodedRun> runs[2];
  std::int64_t first = 0;
  for (int turn = 0;; turn ^= 1) {
    const CodedRun* before = runs[turn ^ 1] ? &*runs[turn ^ 1] : nullptr;
    const std::int64_t length = CodedRun::length_within(room_bytes, all, h.topology().ranks(), format, bits, first);
    if (length == 0) {
      if (before) co_await before->decode_all(coder);
      co_return;
    }
    CodedRun& run =
        runs[turn].emplace(h.topology(), all, format, bits, first, length, h.intermediate() + turn * room_bytes);
    first += length;
    run.encode(h.rank(), coder);
    const RankBlocks vectors(h.topology(), run);
    std::optional<RunObserver> keeps;
    if (kept) {
      keeps.emplace(h, run, vectors, *kept);
      const Range mine = vectors.part(h.node(), h.local_rank());
      keeps->keep(h.node(), mine, vectors.at(h.node(), mine));
    }
    std::vector<Task> tasks;
    tasks.push_back(allgather(h, vectors, pipeline, 1, keeps ? &*keeps : nullptr));
    if (before) tasks.push_back(before->decode_all(coder));
    co_await all_of(tasks);
  }
}

Task quantized_reduce_scatter(Hierarchy& h, const Operands& input, Operand output, NumberFormat format, CodeBits bits,
                              PipelineSettings pipeline) {
  const ReductionOrder order(h.topology(), ReductionTree());
  const QuantizedCoding coding(accumulator_of(format), bits);
  const NumberSum sum(accumulator_of(format), coding);
  if (!is_short(format)) {
    co_await reduce_scatter(h, input, output, sum, order, pipeline);
    co_return;
  }
  const SingleBlock own(input, h.rank(), output);
  const RankBlocks given(h.topology(), input), result(h.topology(), own);
  const WidenedVectors wide(given, format), wide_result(result, format);
  co_await reduce_scatter(h, wide, wide_result, sum, order, pipeline);
}

Task quantized_allreduce(Hierarchy& h, Operand input, Operand output, NumberFormat format, CodeBits bits,
                         CodeBits result_bits, PipelineSettings pipeline) {
  const std::int64_t number = number_bytes(format);
  const EvenBlocks blocks(h.topology(), output, format);
  {
    const ReductionOrder order(h.topology(), ReductionTree());
    const QuantizedCoding coding(accumulator_of(format), bits);
    const NumberSum sum(accumulator_of(format), coding);
    const EvenParts given(h.topology(), input, number), result(h.topology(), output, number);
    const WidenedVectors wide(given, format), wide_result(result, format);
    if (is_short(format))
      co_await reduce_to_lanes(h, wide, wide_result, sum, order, pipeline);
    else
      co_await reduce_to_lanes(h, given, result, sum, order, pipeline);
  }
  co_await quantized_allgather(h, blocks.of(h.rank()), blocks, format, result_bits, pipeline);
}

}  // namespace bestride::inline collectives
