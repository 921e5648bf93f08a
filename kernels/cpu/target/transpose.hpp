// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transposes: a row of the packed order crosses cache lines of the user's memory (row stride = width, large unit
// stride). The kernel processes one full line of the user's memory at a time and distributes its blocks to as many
// packed rows; the packed order is unchanged. Alternative considered: a walk in packed order, which touches every line
// once per block in it and is 2-9x slower. Requires that no two blocks share a byte: |stride| >= rows * width.
#include "kernels/cpu/target/strided.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

/// Moves rows [row, row + deep) of all columns, one block at a time.
template <class Move, bool packing>
[[gnu::always_inline]] inline void scatter_lines(const Piece& piece, Byte* packed, Byte* user, Int row, Int deep,
                                                 Int first_column) {
  const Int width = Move::width(piece.width);
  const Int row_bytes = piece.count * width;
  for (Int column = first_column; column < piece.count; ++column) {
    Byte* line = user + column * piece.stride + row * width;
    Byte* to = packed + row * row_bytes + column * width;
    for (Int i = 0; i < deep; ++i) move_block<Move, packing>(to + i * row_bytes, line + i * width, width);
  }
}

/// Number of rows to process first so that the following tiles start at a cache line of the user's memory; 0 if this is
/// impossible.
inline Int rows_to_line(const Piece& piece, const Byte* user, Int width) {
  const Int off = static_cast<Int>(-reinterpret_cast<std::uintptr_t>(user) & 63);
  if (piece.stride % 64 != 0 || off % width != 0) return 0;
  const Int rows = off / width;
  return rows < piece.rows ? rows : piece.rows;
}

template <class Move, bool packing>
void transpose(const Piece& piece, Byte* packed, Byte* user) {
  const Int width = Move::width(piece.width);
  const Int tile = width < 64 ? 64 / width : 1;
  Int row = rows_to_line(piece, user, width);
  scatter_lines<Move, packing>(piece, packed, user, 0, row, 0);
  for (; row < piece.rows; row += tile)
    scatter_lines<Move, packing>(piece, packed, user, row, tile < piece.rows - row ? tile : piece.rows - row, 0);
}

template <class Move>
constexpr Kernels transpose_kernels(const char* name) {
  return {name, transpose<Move, true>, transpose<Move, false>};
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
