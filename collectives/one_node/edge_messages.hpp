// SPDX-License-Identifier: Apache-2.0
#pragma once
// EdgeMessages: neighbor collectives by messages, for ranks that share no memory (else Edges).
//
// A message of the collective is sent in pieces; the first one that is not full is the last one, so the destination
// need not know its length. If several edges join the same two ranks, their messages follow each other in the order of
// the edges' numbers.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/operand.hpp"
#include "collectives/core/task.hpp"
#include "collectives/core/transport.hpp"
#include "collectives/one_node/edges.hpp"

namespace bestride::inline collectives {

class EdgeMessages {
 public:
  static constexpr std::int64_t piece_bytes = 64 * 1024;
  /// `transport` outlives this object. `out`: the edges of which this rank is the source. May throw std::bad_alloc.
  EdgeMessages(Transport& transport, std::span<const EdgeEnd> out)
      : transport_(transport), out_(out.begin(), out.end()) {}

  /// One neighbor collective. `in`: the edges of which this rank is the destination, in the order of the blocks.
  /// input.of(i) is sent along out[i], and output.of(i) receives from in[i]; blocks of edges `none` are not used. The
  /// arguments live until the task has ended. One exchange at a time.
  Task exchange(std::span<const EdgeEnd> in, const Operands& input, const Operands& output);
  /// In the last exchange, a message was longer than its block.
  bool truncated() const noexcept { return truncated_; }

 private:
  using Chain = std::vector<std::size_t>;  ///< indices of the edges to or from one rank, in the order of their numbers
  static std::vector<Chain> chains(std::span<const EdgeEnd> ends);
  Task send(const Chain& edges, const Operands& input);
  Task receive(std::span<const EdgeEnd> in, const Chain& edges, const Operands& output);

  Transport& transport_;
  const std::vector<EdgeEnd> out_;
  bool truncated_ = false;
};

}  // namespace bestride::inline collectives
