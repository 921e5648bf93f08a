// SPDX-License-Identifier: Apache-2.0
#pragma once
// Quantised collectives: what crosses the wire are int8 or int4 codes of the numbers (docs/quantised.md). Lossy, so only for who asked.
//
// Gathering, after ZeRO++'s qwZ: each rank codes what it has, codes are shared, and every rank reads every block from its codes, its own
// too, so that all ranks hold the same bits. Adding, after its qgZ: a node's ranks add what they have in full precision, in memory;
// the node's sum is coded once, crosses the wire once, and is added to those of the other nodes in full precision: the owner's node
// first, then the others in their order. So a result is a sum in which each node's part but the owner's has been coded once.
//
// 16-bit numbers are added as float32 and rounded at the end; float32 and float64 in their own format.
#include <vector>

#include "collectives/coded_ends.hpp"
#include "collectives/hierarchy.hpp"
#include "collectives/operand.hpp"
#include "collectives/strand.hpp"
#include "kernels/quantise/format.hpp"

namespace bestride {

/// Members of a hierarchy that can gather quantised: one block of each must fit into the memory that is kept. Adding has no such limit.
inline constexpr int most_quantised_ranks = 8192;

/// Keeps the codes that this rank has made or received from another node, while they are at hand.
class KeptCodes {
 public:
  /// `range`: of the codes of the rank's whole block. `codes` hold during the call only.
  virtual void keep(int rank, Range range, const std::byte* codes) noexcept = 0;

 protected:
  ~KeptCodes() = default;
};

/// `own`: this rank's block, perhaps where it lies in `all`; written are all blocks of `all`, the own one with what the others get of
/// it. Every operand is a whole count of numbers of `format`, the same on all ranks. Where `ends` has another to make or to read codes, the
/// operand is not touched, and of `all` only the sizes count: a matter of this rank alone. All outlive the strand. At most
/// most_quantised_ranks. `kept` may be nullptr.
Strand quantised_allgather(Hierarchy& hierarchy, Operand own, const Operands& all, NumberFormat format, CodeBits bits, Pace pace,
                           CodedEnds ends = {}, KeptCodes* kept = nullptr);

/// As reduce_scatter(), of a sum of numbers.
Strand quantised_reduce_scatter(Hierarchy& hierarchy, const Operands& input, Operand output, NumberFormat format, CodeBits bits, Pace pace);

/// As allreduce(), of a sum of numbers that lie together: the above one after the other, with `bits` for what is added and `result_bits`
/// for the sums. All members have the same bits. At most most_quantised_ranks. `results` reads the codes of the sums, if it is not nullptr, each
/// rank's part (sum_parts()) as a block; of `output` only what this rank adds up is written then.
Strand quantised_allreduce(Hierarchy& hierarchy, Operand input, Operand output, NumberFormat format, CodeBits bits, CodeBits result_bits,
                           Pace pace, const CodeSink* results = nullptr);

/// By rank: which of so many bytes it adds up in quantised_allreduce(). May throw std::bad_alloc.
std::vector<Range> sum_parts(const Topology& topology, std::int64_t bytes, NumberFormat format);

}  // namespace bestride
