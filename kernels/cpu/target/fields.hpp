// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernels for units with several block lengths. They use exact moves of 1 to 64 bytes and execute all moves of one
// width together, so that no branch depends on a length. Records of any span: each field is moved for a tile of records
// that stays in the L1 cache. Long lists: blocks are sorted by the width of their moves, each with its offsets in both
// buffers. These kernels change the order of writes, so they require that no two moves write different values to the
// same byte.
#include "kernels/cpu/target/moves.hpp"

namespace bestride::inline kernels::BESTRIDE_TARGET {

template <int W, bool packing>
[[gnu::always_inline]] inline void move_word(Byte* packed, Byte* user) {
  if constexpr (packing)
    WordMove<W>::move(packed, user, W);
  else
    WordMove<W>::move(user, packed, W);
}

template <int W, bool packing>
[[gnu::always_inline]] inline void walk_field(Byte* packed, Int packed_stride, Byte* user, Int user_stride, Int count) {
  for (; count >= 4; count -= 4) {
    move_word<W, packing>(packed, user);
    move_word<W, packing>(packed + packed_stride, user + user_stride);
    move_word<W, packing>(packed + 2 * packed_stride, user + 2 * user_stride);
    move_word<W, packing>(packed + 3 * packed_stride, user + 3 * user_stride);
    packed += 4 * packed_stride;
    user += 4 * user_stride;
  }
  for (; count > 0; --count) {
    move_word<W, packing>(packed, user);
    packed += packed_stride;
    user += user_stride;
  }
}

template <bool packing>
void fields(const Piece& piece, Byte* packed, Byte* user) {
  constexpr Int tile_bytes = 16384;
  const Int width = piece.width, stride = piece.stride;
  const Int reach = (stride < 0 ? -stride : stride) + width;
  const Int tile = reach < tile_bytes / 8 ? tile_bytes / reach : 8;
  for (Int row = 0; row < piece.rows; ++row) {
    Byte* at = user + row * piece.row_stride;
    for (Int left = piece.count; left > 0;) {
      const Int n = left < tile ? left : tile;
      for (const FieldMove* move = piece.moves; move != piece.moves + piece.move_count; ++move) {
        Byte* to = packed + move->packed;
        Byte* from = at + move->user;
        switch (move->width) {
          case 1: walk_field<1, packing>(to, width, from, stride, n); break;
          case 2: walk_field<2, packing>(to, width, from, stride, n); break;
          case 4: walk_field<4, packing>(to, width, from, stride, n); break;
          case 8: walk_field<8, packing>(to, width, from, stride, n); break;
          case 16: walk_field<16, packing>(to, width, from, stride, n); break;
          case 32: walk_field<32, packing>(to, width, from, stride, n); break;
          default: walk_field<64, packing>(to, width, from, stride, n); break;
        }
      }
      packed += n * width;
      at += n * stride;
      left -= n;
    }
  }
}

template <int W, bool packing>
[[gnu::always_inline]] inline void walk_class(const PlacedMove* move, const PlacedMove* end, Byte* packed, Byte* user) {
  for (; end - move >= 4; move += 4) {
    move_word<W, packing>(packed + move[0].packed, user + move[0].user);
    move_word<W, packing>(packed + move[1].packed, user + move[1].user);
    move_word<W, packing>(packed + move[2].packed, user + move[2].user);
    move_word<W, packing>(packed + move[3].packed, user + move[3].user);
  }
  for (; move != end; ++move) move_word<W, packing>(packed + move->packed, user + move->user);
}

template <bool packing>
void sorted_list(const Piece& piece, Byte* packed, Byte* user) {
  const PlacedMove* const moves = piece.sorted;
  const std::int32_t* const ends = piece.class_ends;
  for (Int row = 0; row < piece.rows; ++row) {
    Byte* at = user + row * piece.row_stride;
    walk_class<1, packing>(moves, moves + ends[0], packed, at);
    walk_class<2, packing>(moves + ends[0], moves + ends[1], packed, at);
    walk_class<4, packing>(moves + ends[1], moves + ends[2], packed, at);
    walk_class<8, packing>(moves + ends[2], moves + ends[3], packed, at);
    walk_class<16, packing>(moves + ends[3], moves + ends[4], packed, at);
    walk_class<32, packing>(moves + ends[4], moves + ends[5], packed, at);
    walk_class<64, packing>(moves + ends[5], moves + ends[6], packed, at);
    packed += piece.row_bytes;
  }
}

}  // namespace bestride::inline kernels::BESTRIDE_TARGET
