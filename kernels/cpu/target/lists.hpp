// SPDX-License-Identifier: Apache-2.0
#pragma once
// List kernels: blocks at listed offsets, of one width or of mixed lengths, in packing order; the whole list once per
// row. Offsets are 32-bit if they fit: for 4-byte blocks a 64-bit list is twice as large as the payload.
#include "kernels/cpu/target/strided.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

template <class Move, bool packing, class Offset>
[[gnu::always_inline]] inline void walk_list(const Piece& piece, const Offset* offsets, Byte* packed, Byte* user) {
  const Int width = Move::width(piece.width);
  for (Int row = 0; row < piece.rows; ++row) {
    Byte* base = user + row * piece.row_stride;
    Int i = 0;
    for (; i + 4 <= piece.count; i += 4) {
      move_block<Move, packing>(packed, base + offsets[i], width);
      move_block<Move, packing>(packed + width, base + offsets[i + 1], width);
      move_block<Move, packing>(packed + 2 * width, base + offsets[i + 2], width);
      move_block<Move, packing>(packed + 3 * width, base + offsets[i + 3], width);
      packed += 4 * width;
    }
    for (; i < piece.count; ++i) {
      move_block<Move, packing>(packed, base + offsets[i], width);
      packed += width;
    }
  }
}

template <class Move, bool packing>
void list(const Piece& piece, Byte* packed, Byte* user) {
  if (piece.offsets32)
    walk_list<Move, packing>(piece, piece.offsets32, packed, user);
  else
    walk_list<Move, packing>(piece, piece.offsets, packed, user);
}

template <bool packing>
void mixed_list(const Piece& piece, Byte* packed, Byte* user) {
  for (Int row = 0; row < piece.rows; ++row) {
    Byte* base = user + row * piece.row_stride;
    for (Int i = 0; i < piece.count; ++i) {
      const Int width = piece.lengths[i];
      move_block<AnyMove, packing>(packed, base + piece.offsets[i], width);
      packed += width;
    }
  }
}

template <class Move>
constexpr Kernels list_kernels(const char* name) {
  return {name, list<Move, true>, list<Move, false>};
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
