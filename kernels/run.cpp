// SPDX-License-Identifier: Apache-2.0
// Executes a program, as a whole and for any range of packed bytes.
#include <algorithm>
#include <cstring>

#include "base/copy.hpp"
#include "kernels/program.hpp"

namespace bestride::inline kernels {
namespace {

template <Direction direction>
void copy(Byte* packed, Byte* user, std::int64_t size) noexcept {
  if constexpr (direction == Direction::pack)
    copy_bytes(packed, user, static_cast<std::size_t>(size));
  else
    copy_bytes(user, packed, static_cast<std::size_t>(size));
}

/// Moves the packed bytes [first, last) of one unit. `user` is the address of the unit's first packed byte.
template <Direction direction>
void part_of_unit(const Piece& piece, Byte* packed, Byte* user, std::int64_t first, std::int64_t last) noexcept {
  if (!piece.moves) return copy<direction>(packed, user + first, last - first);
  for (const FieldMove* move = piece.moves; move != piece.moves + piece.move_count; ++move) {
    const std::int64_t from = std::max(first, move->packed);
    const std::int64_t to = std::min(last, move->packed + move->width);
    if (from < to) copy<direction>(packed + (from - first), user + move->user + (from - move->packed), to - from);
  }
}

struct Unit {
  std::int64_t index;
  std::int64_t start;  ///< packed position in its row
};

/// The unit of a row that contains the packed byte `position`.
Unit unit_at(const Op& op, std::int64_t position) noexcept {
  const Piece& piece = op.piece;
  if (!piece.lengths) {
    const std::int64_t index = position / piece.width;
    return {index, index * piece.width};
  }
  const std::int64_t* above = std::upper_bound(op.starts, op.starts + piece.count, position);
  return {above - op.starts - 1, above[-1]};
}

std::int64_t unit_offset(const Piece& piece, std::int64_t index) noexcept {
  return piece.offsets ? piece.offsets[index] : index * piece.stride;
}

std::int64_t unit_width(const Piece& piece, std::int64_t index) noexcept {
  return piece.lengths ? piece.lengths[index] : piece.width;
}

/// Moves [first, last) within one row; first < last <= the size of the row.
template <Direction direction>
void run_row_range(const Op& op, Byte* packed, Byte* user, std::int64_t first, std::int64_t last) noexcept {
  const Piece& piece = op.piece;
  Unit unit = unit_at(op, first);
  if (first > unit.start) {
    const std::int64_t width = unit_width(piece, unit.index);
    const std::int64_t end = std::min(last, unit.start + width);
    part_of_unit<direction>(piece, packed, user + unit_offset(piece, unit.index), first - unit.start, end - unit.start);
    packed += end - first;
    first = end;
    if (first == last) return;
    unit = {unit.index + 1, unit.start + width};
  }
  const Unit stop = last == op.size / piece.rows ? Unit{piece.count, last} : unit_at(op, last);
  if (stop.index > unit.index) {
    Piece whole = piece;
    whole.rows = 1;
    whole.count = stop.index - unit.index;
    Byte* at = user;
    if (piece.offsets) {
      whole.offsets += unit.index;
      if (whole.offsets32) whole.offsets32 += unit.index;
      if (whole.lengths) whole.lengths += unit.index;
    } else {
      at += unit.index * piece.stride;
    }
    op.row[direction].kernel(whole, packed, at);
    packed += stop.start - first;
  }
  if (last > stop.start)
    part_of_unit<direction>(piece, packed, user + unit_offset(piece, stop.index), 0, last - stop.start);
}

template <Direction direction>
void run_piece_range(const Op& op, Byte* packed, Byte* user, std::int64_t first, std::int64_t last) noexcept {
  const Piece& piece = op.piece;
  if (piece.rows == 1)
    return run_row_range<direction>(op, packed, user, first, last);  // a whole row is never passed to this function
  const std::int64_t row_size = op.size / piece.rows;
  std::int64_t row = first / row_size;
  if (first > row * row_size) {
    const std::int64_t end = std::min(last, (row + 1) * row_size);
    run_row_range<direction>(op, packed, user + row * piece.row_stride, first - row * row_size, end - row * row_size);
    packed += end - first;
    first = end;
    ++row;
  }
  const std::int64_t stop = last / row_size;
  if (stop > row) {
    Piece whole = piece;
    whole.rows = stop - row;
    op.whole[direction].kernel(whole, packed, user + row * piece.row_stride);
    packed += whole.rows * row_size;
    first = stop * row_size;
  }
  if (last > first) run_row_range<direction>(op, packed, user + stop * piece.row_stride, 0, last - first);
}

template <Direction direction>
void run_loop_range(const Op& op, Byte* packed, Byte* user, std::int64_t first, std::int64_t last) noexcept {
  const std::int64_t turn_size = op.body->size;
  for (std::int64_t turn = first / turn_size; first < last; ++turn) {
    const std::int64_t start = turn * turn_size;
    const std::int64_t end = std::min(last, start + turn_size);
    Byte* at = user + turn * op.stride;
    if (end - first == turn_size)
      run<direction>(*op.body, packed, at);
    else
      run_range<direction>(*op.body, packed, at, first - start, end - start);
    packed += end - first;
    first = end;
  }
}

template <Direction direction>
void run_sequence_range(const Op& op, Byte* packed, Byte* user, std::int64_t first, std::int64_t last) noexcept {
  auto part =
      std::upper_bound(op.parts.begin(), op.parts.end(), first,
                       [](std::int64_t position, const Op::Part& candidate) { return position < candidate.start; });
  for (--part; first < last; ++part) {
    const std::int64_t end = std::min(last, part->start + part->op->size);
    run_range<direction>(*part->op, packed, user + part->offset, first - part->start, end - part->start);
    packed += end - first;
    first = end;
  }
}

}  // namespace

template <Direction direction>
void run(const Op& op, Byte* packed, Byte* user) noexcept {
  switch (op.kind) {
    case Op::Kind::piece: op.whole[direction].kernel(op.piece, packed, user); return;
    case Op::Kind::loop: {
      const Op& body = *op.body;
      const bool leaf = body.kind == Op::Kind::piece;
      for (std::int64_t turn = 0; turn < op.count; ++turn) {
        if (leaf)
          body.whole[direction].kernel(body.piece, packed, user + turn * op.stride);
        else
          run<direction>(body, packed, user + turn * op.stride);
        packed += body.size;
      }
      return;
    }
    case Op::Kind::sequence:
      for (const Op::Part& part : op.parts) run<direction>(*part.op, packed + part.start, user + part.offset);
      return;
  }
}

template <Direction direction>
void run_range(const Op& op, Byte* packed, Byte* user, std::int64_t first, std::int64_t last) noexcept {
  if (first == last) return;
  if (first == 0 && last == op.size) return run<direction>(op, packed, user);
  switch (op.kind) {
    case Op::Kind::piece: return run_piece_range<direction>(op, packed, user, first, last);
    case Op::Kind::loop: return run_loop_range<direction>(op, packed, user, first, last);
    case Op::Kind::sequence: return run_sequence_range<direction>(op, packed, user, first, last);
  }
}

template void run<Direction::pack>(const Op&, Byte*, Byte*) noexcept;
template void run<Direction::unpack>(const Op&, Byte*, Byte*) noexcept;
template void run_range<Direction::pack>(const Op&, Byte*, Byte*, std::int64_t, std::int64_t) noexcept;
template void run_range<Direction::unpack>(const Op&, Byte*, Byte*, std::int64_t, std::int64_t) noexcept;

}  // namespace bestride::inline kernels
