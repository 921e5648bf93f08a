// SPDX-License-Identifier: Apache-2.0
#pragma once
// Strided kernels: rows x count equal blocks at regular distances, one Move per block, in packing order (so that if
// blocks overlap in the user's memory, the later one determines the value). Unrolled by four: at 16 bytes per block, a
// loop without unrolling costs 1.4x in L1.
#include "kernels/cpu/target/moves.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

template <class Move, bool packing>
[[gnu::always_inline]] inline void move_block(Byte* packed, Byte* user, Int width) {
  if constexpr (packing)
    Move::move(packed, user, width);
  else
    Move::move(user, packed, width);
}

template <class Move, bool packing>
void strided(const Piece& piece, Byte* packed, Byte* user) {
  const Int width = Move::width(piece.width);
  const Int stride = piece.stride;
  for (Int row = 0; row < piece.rows; ++row) {
    Byte* at = user + row * piece.row_stride;
    Int left = piece.count;
    for (; left >= 4; left -= 4) {
      move_block<Move, packing>(packed, at, width);
      move_block<Move, packing>(packed + width, at + stride, width);
      move_block<Move, packing>(packed + 2 * width, at + 2 * stride, width);
      move_block<Move, packing>(packed + 3 * width, at + 3 * stride, width);
      packed += 4 * width;
      at += 4 * stride;
    }
    for (; left > 0; --left) {
      move_block<Move, packing>(packed, at, width);
      packed += width;
      at += stride;
    }
  }
}

template <class Move>
constexpr Kernels strided_kernels(const char* name) {
  return {name, strided<Move, true>, strided<Move, false>};
}

template <class Move, int K>
constexpr Kernels paced_kernels(const char* name) {
  return {name, nullptr, strided<PacedMove<Move, K>, false>};
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
