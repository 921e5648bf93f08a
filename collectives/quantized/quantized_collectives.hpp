// SPDX-License-Identifier: Apache-2.0
#pragma once
// Quantized collectives: int8 or int4 codes of the numbers cross the network (docs/quantized.md). Lossy, so opt-in.
//
// The allgather follows qwZ of ZeRO++: each rank encodes its block, the codes are gathered, and every rank decodes
// every block from its codes, including its own. So all ranks hold the same bits. The sum follows qgZ of ZeRO++: the
// ranks of a node add their numbers in full precision, in memory; the sum of a node is encoded once, crosses the
// network once, and is added to those of the other nodes in full precision. The owner's node comes first, then the
// others in their order. So in the result, the part of every node except the owner's has been encoded once.
//
// 16-bit numbers are added as float32 and rounded at the end; float32 and float64 are added in their own format.
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/operand.hpp"
#include "collectives/core/task.hpp"
#include "kernels/quantize/format.hpp"

namespace bestride::inline collectives {

/// The largest hierarchy for a quantized allgather: one code block per member must fit into Hierarchy::intermediate().
/// Sums have no such limit.
inline constexpr int max_quantized_ranks = 8192;

/// Keeps the codes that this rank makes, or receives from another node.
class CodeObserver {
 public:
  /// `range`: of the codes of the rank's whole block. `codes` is valid during the call only.
  virtual void keep(int rank, Range range, const std::byte* codes) noexcept = 0;

 protected:
  ~CodeObserver() = default;
};

/// An allgather that sends codes between nodes. `own`: this rank's block; it may be the memory of its block in `all`.
/// All blocks of `all` are written, and the own block gets the same values as on other ranks. Each operand consists of
/// complete elements of `format`; its size is the same on all ranks. All arguments outlive the task. At most
/// max_quantized_ranks members. `kept` may be nullptr.
Task quantized_allgather(Hierarchy& hierarchy, Operand own, const Operands& all, NumberFormat format, CodeBits bits,
                         PipelineSettings pipeline, CodeObserver* kept = nullptr);

/// A reduce_scatter() of sums that sends codes between nodes. Operands consist of complete numbers of `format`. All
/// arguments outlive the task.
Task quantized_reduce_scatter(Hierarchy& hierarchy, const Operands& input, Operand output, NumberFormat format,
                              CodeBits bits, PipelineSettings pipeline);

/// An allreduce() of sums of contiguous numbers that sends codes between nodes: quantized_reduce_scatter() and then
/// quantized_allgather(), with `bits` for the summands and `result_bits` for the sums. All members get the same bits.
/// All arguments outlive the task. At most max_quantized_ranks members.
Task quantized_allreduce(Hierarchy& hierarchy, Operand input, Operand output, NumberFormat format, CodeBits bits,
                         CodeBits result_bits, PipelineSettings pipeline);

}  // namespace bestride::inline collectives
