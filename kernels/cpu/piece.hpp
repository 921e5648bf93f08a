// SPDX-License-Identifier: Apache-2.0
#pragma once
// Piece: the arguments of one kernel call, and the signature that all copy kernels share.
//
// A piece has `rows` x `count` units. Rows are `row_stride` bytes apart, the units of a row are `stride` bytes apart
// (or at `offsets`). A part of a piece is also a Piece, with smaller counts, so a range of a message uses the same
// kernels. Both directions have one signature: packing only reads `user`, unpacking only reads `packed`. Alternative
// considered: two signatures that differ only in const, which doubles every table and every walk over the program. This
// header is included by sources compiled for wider instruction sets than the baseline: no std:: code here.
#include <cstdint>

namespace bestride::inline kernels {

using Byte = unsigned char;

/// One move of a record, of exactly `width` (1, 2, 4, ... 64) bytes between `user` and `packed`. Both are offsets
/// relative to the record.
struct FieldMove {
  std::int64_t user = 0;
  std::int64_t packed = 0;
  std::int64_t width = 0;
};

/// The move of a block of a list. Its width is that of its class of moves (Piece::class_ends).
struct PlacedMove {
  std::int32_t user = 0;
  std::int32_t packed = 0;
};

struct Piece {
  std::int64_t width = 0;   ///< packed bytes of a unit: a block or a whole record; 0: see `lengths`
  std::int64_t count = 1;   ///< units in a row
  std::int64_t stride = 0;  ///< bytes between consecutive units; unused by lists
  std::int64_t rows = 1;
  std::int64_t row_stride = 0;  ///< bytes
  // Block lists: unit i is at offsets[i] or offsets32[i], relative to the first packed byte of the row.
  const std::int64_t* offsets = nullptr;
  const std::int32_t* offsets32 = nullptr;
  const std::int64_t* lengths = nullptr;  ///< mixed lists only
  // Records: `move_count` moves per record; moves may overlap if they write the same values.
  const FieldMove* moves = nullptr;
  std::int64_t move_count = 0;
  // Records within 64 bytes: bit b set = byte b of the record is packed, in ascending order. `group` is the number of
  // records that fit in 64 bytes.
  std::uint64_t mask = 0;
  std::uint64_t group_mask = 0;
  std::int64_t group = 1;
  // Mixed lists of short blocks, whole rows only: the moves of width 1 << c end at index class_ends[c].
  const PlacedMove* sorted = nullptr;
  std::int32_t class_ends[7] = {};
  std::int64_t row_bytes = 0;
};

/// `packed`: the next packed byte. `user`: the address of the first packed byte of the first unit. Kernels neither
/// throw nor allocate.
using Kernel = void (*)(const Piece& piece, Byte* packed, Byte* user);

}  // namespace bestride::inline kernels
