// SPDX-License-Identifier: Apache-2.0
#include "collectives/quantised.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "collectives/quantised_sum.hpp"
#include "collectives/reduce_scatter.hpp"
#include "collectives/share.hpp"
#include "collectives/strings.hpp"
#include "kernels/quantise/quantise.hpp"

namespace bestride {
namespace {

constexpr std::int64_t room_bytes = Hierarchy::kept_bytes / 2;
static_assert(most_quantised_ranks * (256 + 8) <= room_bytes, "one block a rank");

/// What is gathered at a time: of each rank's block the same run of numbers, as codes in memory that is there already.
class CodedRun final : public Operands {
 public:
  /// From number `first` of each block on, as many as `room` holds the codes of; no numbers where all blocks have ended. Codes lie node by
  /// node. May throw std::bad_alloc.
  CodedRun(const Topology& topology, const Operands& blocks, NumberFormat format, CodeBits bits, std::int64_t first, std::byte* room)
      : blocks_(blocks),
        format_(format),
        bits_(bits),
        number_(number_bytes(format)),
        first_(first),
        codes_(static_cast<std::size_t>(topology.ranks())) {
    std::int64_t ranks = 0;
    for (int rank = 0; rank < topology.ranks(); ++rank) ranks += numbers_of(rank) > first;
    if (ranks == 0) return;
    const std::int64_t block = quantised_block_size(bits);
    length_ = room_bytes / ranks / quantised_bytes(block, format, bits) * block;
    for (int node = 0; node < topology.nodes(); ++node)
      for (const int rank : topology.ranks_on(node)) {
        const std::int64_t bytes = quantised_bytes(here(rank), format, bits);
        codes_[static_cast<std::size_t>(rank)] = Operand(room, bytes);
        room += bytes;
      }
  }

  Operand of(int rank) const noexcept override { return codes_[static_cast<std::size_t>(rank)]; }
  std::int64_t bytes(int rank) const noexcept override { return of(rank).bytes(); }
  bool empty() const noexcept { return length_ == 0; }
  /// Where the next run begins.
  std::int64_t next() const noexcept { return first_ + length_; }

  /// `own`: the rank's whole block. `staging`: for what does not lie together.
  void encode(int rank, const Operand& own, std::byte* staging) const noexcept {
    in_parts(rank, [&](Range numbers, std::byte* codes) {
      const std::byte* from = own.at(numbers.first);
      if (!from) {
        own.read(staging, numbers.first, numbers.last);
        from = staging;
      }
      quantise(from, format_, numbers.bytes() / number_, bits_, codes);
    });
  }
  void decode(int rank, std::byte* staging) const noexcept {
    const Operand block = blocks_.of(rank);
    in_parts(rank, [&](Range numbers, const std::byte* codes) {
      std::byte* to = block.at(numbers.first);
      dequantise(codes, bits_, numbers.bytes() / number_, format_, to ? to : staging);
      if (!to) block.write(staging, numbers.first, numbers.last);
    });
  }

 private:
  std::int64_t numbers_of(int rank) const noexcept { return blocks_.bytes(rank) / number_; }
  /// Numbers of the run.
  std::int64_t here(int rank) const noexcept { return std::clamp<std::int64_t>(numbers_of(rank) - first_, 0, length_); }
  /// use(bytes of the rank's block, where their codes lie), so many that they fit into staging.
  template <class Use>
  void in_parts(int rank, Use use) const noexcept {
    constexpr std::int64_t part = 256 * 1024;  // numbers, whole blocks
    static_assert(part * 8 <= Hierarchy::staging_bytes);
    std::byte* codes = of(rank).at(0);
    for (std::int64_t done = 0, all = here(rank); done < all; done += part) {
      const std::int64_t last = std::min(done + part, all);
      use(Range{(first_ + done) * number_, (first_ + last) * number_}, codes);
      codes += quantised_bytes(last - done, format_, bits_);
    }
  }

  const Operands& blocks_;
  const NumberFormat format_;
  const CodeBits bits_;
  const std::int64_t number_, first_;
  std::int64_t length_ = 0;
  std::vector<Operand> codes_;
};

/// One rank's codes at a step, so that the run that is on the wire meanwhile goes on.
Strand decode_all(const CodedRun& run, int ranks, std::byte* staging) {
  for (int rank = 0; rank < ranks; ++rank) {
    co_await pause();
    run.decode(rank, staging);
  }
}

/// The part of a vector that each rank has after combine(): its lanes of its node's.
class EvenBlocks final : public Operands {
 public:
  /// `whole` lies together. May throw std::bad_alloc.
  EvenBlocks(const Topology& topology, Operand whole, std::int64_t number) : parts_(static_cast<std::size_t>(topology.ranks())) {
    for (int node = 0; node < topology.nodes(); ++node) {
      const std::int64_t begin = part_of(whole.bytes(), topology.nodes(), node, number).first;
      const EvenParts strings(topology, whole, number);
      int local = 0;
      for (const int rank : topology.ranks_on(node)) {
        const Range part = strings.part(node, local++);
        parts_[static_cast<std::size_t>(rank)] = Operand(whole.at(begin + part.first), part.bytes());
      }
    }
  }
  Operand of(int rank) const noexcept override { return parts_[static_cast<std::size_t>(rank)]; }
  std::int64_t bytes(int rank) const noexcept override { return of(rank).bytes(); }

 private:
  std::vector<Operand> parts_;
};

bool is_short(NumberFormat format) noexcept { return number_bytes(format) == 2; }
NumberFormat accumulator_of(NumberFormat format) noexcept { return is_short(format) ? NumberFormat::float32 : format; }

}  // namespace

Strand quantised_allgather(Hierarchy& h, Operand own, const Operands& all, NumberFormat format, CodeBits bits, Pace pace) {
  const int ranks = h.topology().ranks();
  std::optional<CodedRun> runs[2];
  std::int64_t first = 0;
  for (int turn = 0;; turn ^= 1) {
    CodedRun& run = runs[turn].emplace(h.topology(), all, format, bits, first, h.kept() + turn * room_bytes);
    const CodedRun* before = runs[turn ^ 1] ? &*runs[turn ^ 1] : nullptr;
    if (run.empty()) {
      if (before) co_await decode_all(*before, ranks, h.staging());
      co_return;
    }
    first = run.next();
    run.encode(h.rank(), own, h.staging());
    const RankBlocks strings(h.topology(), run);
    std::vector<Strand> strands;
    strands.push_back(share(h, strings, pace));
    if (before) strands.push_back(decode_all(*before, ranks, h.staging()));
    co_await all_of(strands);
  }
}

Strand quantised_reduce_scatter(Hierarchy& h, const Operands& input, Operand output, NumberFormat format, CodeBits bits, Pace pace) {
  const ReductionOrder order(h.topology(), false);
  const QuantisedCoding coding(accumulator_of(format), bits);
  const NumberSum sum(accumulator_of(format), coding);
  if (!is_short(format)) {
    co_await reduce_scatter(h, input, output, sum, order, pace);
    co_return;
  }
  const SingleBlock own(input, h.rank(), output);
  const RankBlocks given(h.topology(), input), result(h.topology(), own);
  const WidenedStrings wide(given, format), wide_result(result, format);
  co_await reduce_scatter(h, wide, wide_result, sum, order, pace);
}

Strand quantised_allreduce(Hierarchy& h, Operand input, Operand output, NumberFormat format, CodeBits bits, CodeBits result_bits,
                           Pace pace) {
  const std::int64_t number = number_bytes(format);
  const EvenBlocks blocks(h.topology(), output, number);
  {
    const ReductionOrder order(h.topology(), false);
    const QuantisedCoding coding(accumulator_of(format), bits);
    const NumberSum sum(accumulator_of(format), coding);
    const EvenParts given(h.topology(), input, number), result(h.topology(), output, number);
    const WidenedStrings wide(given, format), wide_result(result, format);
    if (is_short(format))
      co_await reduce_to_lanes(h, wide, wide_result, sum, order, pace);
    else
      co_await reduce_to_lanes(h, given, result, sum, order, pace);
  }
  co_await quantised_allgather(h, blocks.of(h.rank()), blocks, format, result_bits, pace);
}

}  // namespace bestride
