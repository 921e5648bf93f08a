// SPDX-License-Identifier: Apache-2.0
#pragma once
// ReduceScatterResult: where the result of a reduce-scatter is assembled. If the call is in place, the result must not
// overwrite input that is still to be read. So it is kept in a separate buffer, or, if there is no memory for one, in
// this rank's own block of the input. Each byte of that block has been read before its result arrives.
#include <algorithm>
#include <utility>

#include "collectives/core/operand.hpp"
#include "interpose/objects/buffer_pool.hpp"

namespace bestride::inline interpose {

class ReduceScatterResult {
 public:
  /// For a call that is not in place: the result is written to the output at once.
  ReduceScatterResult() = default;
  /// For a call in place, with a result of `bytes` bytes. `pool` outlives this object.
  ReduceScatterResult(BufferPool& pool, std::int64_t bytes) noexcept : in_place_(bytes > 0) {
    if (in_place_) buffer_ = BufferLease(pool, bytes);
  }

  /// Called at each start: returns where the result is written. `own`: this rank's block of the input, as long as
  /// `output`.
  Operand place(Operand output, Operand own) noexcept {
    place_ = !in_place_ ? output : buffer_ ? Operand(buffer_.data(), output.bytes()) : own;
    return place_;
  }
  /// Copies the result to the output. Called after all input has been read.
  void deliver(Operand output) const noexcept {
    if (!in_place_) return;
    if (buffer_) return output.write(buffer_.data(), 0, output.bytes());
    // In ascending order, because the own block is after the result or at the same place.
    std::byte piece[4096];
    for (std::int64_t first = 0; first < output.bytes(); first += sizeof piece) {
      const std::int64_t last = std::min<std::int64_t>(output.bytes(), first + sizeof piece);
      place_.read(piece, first, last);
      output.write(piece, first, last);
    }
  }

 private:
  bool in_place_ = false;
  BufferLease buffer_;
  Operand place_;
};

}  // namespace bestride::inline interpose
