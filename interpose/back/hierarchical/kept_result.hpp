// SPDX-License-Identifier: Apache-2.0
#pragma once
// KeptResult: where the result of a reduce-scatter is put together. In place it must wait until all has been read: in a buffer of its own, or
// where there is no memory for one, in this rank's own block of the input, each byte of which has been read when a result comes for it.
#include <algorithm>
#include <utility>

#include "collectives/operand.hpp"
#include "interpose/back/buffer.hpp"

namespace bestride {

class KeptResult {
 public:
  /// Not in place: goes to the output at once.
  KeptResult() = default;
  /// In place, of so many bytes. `pool` outlives this.
  KeptResult(BufferPool& pool, std::int64_t bytes) noexcept : in_place_(bytes > 0) {
    if (in_place_) buffer_ = Lease(pool, bytes);
  }

  /// At each start: where it is written. `own`: this rank's block of the input, as long as `output`.
  Operand place(Operand output, Operand own) noexcept {
    place_ = !in_place_ ? output : buffer_ ? Operand(buffer_.data(), output.bytes()) : own;
    return place_;
  }
  /// After all has been read.
  void deliver(Operand output) const noexcept {
    if (!in_place_) return;
    if (buffer_) return output.write(buffer_.data(), 0, output.bytes());
    // Upwards: the own block lies behind the result or where it is.
    std::byte piece[4096];
    for (std::int64_t first = 0; first < output.bytes(); first += sizeof piece) {
      const std::int64_t last = std::min<std::int64_t>(output.bytes(), first + sizeof piece);
      place_.read(piece, first, last);
      output.write(piece, first, last);
    }
  }

 private:
  bool in_place_ = false;
  Lease buffer_;
  Operand place_;
};

}  // namespace bestride
