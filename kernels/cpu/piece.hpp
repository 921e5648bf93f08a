// SPDX-License-Identifier: Apache-2.0
#pragma once
// Piece: the arguments of one kernel call, and the signature all copy kernels share.
//
// A piece is `rows` x `count` units, rows `row_stride` bytes apart, units of a row `stride` bytes apart (or at `offsets`). A
// shorter stretch of a piece is a Piece too, with smaller counts, so a range of a message runs through the same kernels.
// One signature for both directions: packing only reads `user`, unpacking only reads `packed`. Two signatures that differ in
// const alone doubled every table and every walk over the program.
// Included by sources compiled for wider instruction sets than the baseline: no std:: code here.
#include <cstdint>

namespace bestride {

using Byte = unsigned char;

/// One exact move of a record: `width` (1, 2, 4, ... 64) bytes from `user` to `packed`, relative to the record.
struct FieldMove {
  std::int64_t user = 0;
  std::int64_t packed = 0;
  std::int64_t width = 0;
};

/// The same for a block of a list; its width is that of its class.
struct PlacedMove {
  std::int32_t user = 0;
  std::int32_t packed = 0;
};

struct Piece {
  std::int64_t width = 0;   ///< packed bytes of a unit: of a block, or of a whole record; 0: see lengths
  std::int64_t count = 1;   ///< units in a row
  std::int64_t stride = 0;  ///< bytes from unit to unit; unused by lists
  std::int64_t rows = 1;
  std::int64_t row_stride = 0;  ///< bytes
  // Block lists: unit i lies at offsets[i], or offsets32[i]; both relative to the first packed byte of the row.
  const std::int64_t* offsets = nullptr;
  const std::int32_t* offsets32 = nullptr;
  const std::int64_t* lengths = nullptr;  ///< mixed lists only
  // Records: `move_count` moves each; moves may overlap where they write the same.
  const FieldMove* moves = nullptr;
  std::int64_t move_count = 0;
  // Records within 64 bytes: bit b set = byte b of the record is packed, in ascending order. `group` records fit 64 bytes.
  std::uint64_t mask = 0;
  std::uint64_t group_mask = 0;
  std::int64_t group = 1;
  // Mixed lists of short blocks, whole rows only: moves of width 1 << c end at class_ends[c].
  const PlacedMove* sorted = nullptr;
  std::int32_t class_ends[7] = {};
  std::int64_t row_bytes = 0;
};

/// `packed`: the next packed byte; `user`: the first packed byte's place of the first unit. Neither throws nor allocates.
using Kernel = void (*)(const Piece& piece, Byte* packed, Byte* user);

}  // namespace bestride
