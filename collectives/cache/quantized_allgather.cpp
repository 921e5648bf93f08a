// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/quantized_allgather.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/copy.hpp"
#include "collectives/cache/lookup.hpp"
#include "collectives/quantized/coded_run.hpp"
#include "collectives/quantized/operand_coder.hpp"
#include "kernels/quantize/quantize.hpp"

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t all_numbers = std::numeric_limits<std::int64_t>::max();
/// The largest ratio of numbers to codes is that of int4 and float64: 40 bytes for 64 numbers.
static_assert(OwnBlock::step + OwnBlock::step / 40 * 64 * 8 <= Hierarchy::staging_bytes);

/// Differs from `plain`, and is unique for each format and code length.
std::uint32_t coding_of(NumberFormat format, CodeBits bits) noexcept {
  return static_cast<std::uint32_t>(format) << 8 | static_cast<std::uint32_t>(bits);
}

/// The codes of this rank's block, one step at a time.
class OwnCodes final : public OwnBlock {
 public:
  /// `count`: numbers in the block. `coder` and `room`, which takes the codes of a step, outlive this object.
  OwnCodes(const OperandCoder& coder, std::int64_t count, NumberFormat format, CodeBits bits,
           std::byte* buffer) noexcept
      : OwnBlock(quantized_bytes(count, format, bits), step / block_bytes(format, bits) * block_bytes(format, bits)),
        coder_(coder),
        count_(count),
        format_(format),
        bits_(bits),
        buffer_(buffer) {}

 private:
  static std::int64_t block_bytes(NumberFormat format, CodeBits bits) noexcept {
    return quantized_bytes(quantized_block_size(bits), format, bits);
  }
  /// A step begins at a block.
  const std::byte* read(Range range) const noexcept override {
    const std::int64_t block = quantized_block_size(bits_), bytes = block_bytes(format_, bits_),
                       first = range.first / bytes * block;
    coder_.encode({first, std::min(count_, first + pieces_in(range.length(), bytes) * block)}, buffer_);
    return buffer_;
  }

  const OperandCoder& coder_;
  const std::int64_t count_;
  const NumberFormat format_;
  const CodeBits bits_;
  std::byte* const buffer_;
};

/// Writes codes to their places in the arena.
class Keeping final : public CodeObserver {
 public:
  Keeping(const Topology& topology, const NodeVectors& vectors, Lookup& lookup) noexcept
      : topology_(topology), vectors_(vectors), lookup_(lookup) {}
  void keep(int rank, Range range, const std::byte* codes) noexcept override {
    const int node = topology_.node_of(rank);
    const std::int64_t begin = vectors_.part(node, topology_.local_rank_of(rank)).first;
    if (std::byte* to = lookup_.memory_for(node, {begin + range.first, begin + range.last}))
      copy_bytes(to, codes, static_cast<std::size_t>(range.length()));
  }

 private:
  const Topology& topology_;
  const NodeVectors& vectors_;
  Lookup& lookup_;
};

}  // namespace

Task cached_quantized_allgather(Hierarchy& h, Operand own, const Operands& all, NumberFormat format, CodeBits bits,
                                CacheTable& table, Arena& arena, PipelineSettings pipeline) {
  const CodedRun sizes(h.topology(), all, format, bits, 0, all_numbers, nullptr);
  const RankBlocks vectors(h.topology(), sizes);
  const OperandCoder coder(own, all, format, bits, h.staging() + OwnBlock::step);
  const OwnCodes codes(coder, all.bytes(h.rank()) / number_bytes(format), format, bits, h.staging());
  Lookup lookup(h, vectors, codes, table, arena, coding_of(format, bits));
  if (lookup.active()) co_await lookup.run();
  if (const std::byte* result = lookup.hit()) {
    const CodedRun kept(h.topology(), all, format, bits, 0, all_numbers, const_cast<std::byte*>(result));  // only read
    co_await kept.decode_all(coder);
    co_return;
  }
  Keeping keeping(h.topology(), vectors, lookup);
  co_await quantized_allgather(h, own, all, format, bits, pipeline, lookup.keeps() ? &keeping : nullptr);
  lookup.written();
}

}  // namespace bestride::inline collectives
