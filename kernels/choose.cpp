// SPDX-License-Identifier: Apache-2.0
// Selection of the kernel for a piece: the forced family if it supports the shape, otherwise the fastest kernel as
// measured.
#include "kernels/choose.hpp"

#include <bit>
#include <cstdlib>

namespace bestride::inline kernels {
namespace {

/// True for blocks that the C library's memcpy moves faster than the wide kernel: long blocks, and medium blocks of
/// pieces that fit the L2 cache (496 and 1024 bytes per block, 30 to 130 KB: 0.87-0.9x; 768 bytes, 12 KB: 1.2x; 2032
/// bytes, 1.5 MB: 1.2x).
bool memcpy_is_better(std::int64_t width, std::int64_t piece_bytes) {
  constexpr std::int64_t always_from = 4096, sometimes_from = 448;
  return width >= always_from || (width >= sometimes_from && piece_bytes >= 16 << 10 && piece_bytes <= 512 << 10);
}

/// Narrow blocks are compressed and expanded in groups if at least this many fit 64 bytes (1- and 2-byte blocks at
/// stride 2 blocks: 3.0x and 1.6x faster than words; 4-byte blocks: 0.8x, because masked byte stores take several
/// cycles on AMD).
constexpr std::int64_t grouped_from = 12;

/// At most this many records use a mask; more records are faster field by field (1771 records of 37 of 40 bytes: 1.8x,
/// 27: 1.3x, 1: 0.35x).
constexpr std::int64_t mask_up_to = 4;

/// Blocks shorter than this leave too many partial lines when streamed (512 bytes: 1.15x of ordinary stores, 1024:
/// equal).
constexpr std::int64_t stream_wide_from = 2048;

/// Fewer blocks per row than this fit the ways of the L1 cache at any stride.
constexpr std::int64_t paced_from = 16;

bool is_word(std::int64_t width) { return width <= 64 && std::has_single_bit(static_cast<std::uint64_t>(width)); }
int log2(std::int64_t width) { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(width))) - 1; }
const Kernels none;

}  // namespace

Choose::Choose(const PackerOptions& options) : table_(kernels_for(options.isa)), family_(options.family) {}

const Kernels& Choose::plain(const Piece& piece) const {
  const std::int64_t width = piece.width;
  if (family_ == KernelFamily::block_copy || width < 1) return table_.block_copy;
  if (family_ == KernelFamily::wide && width > 64) return table_.wide;
  if (is_word(width)) return table_.word[log2(width)];
  if (width < 128) return table_.overlap[log2(width) - 1];
  if (width % 64 == 0 && width <= 256) return table_.fixed[width / 64 - 2];
  return memcpy_is_better(width, piece.rows * piece.count * width) ? table_.block_copy : table_.wide;
}

const Kernels& Choose::gather(const Piece& piece) const {
  if (piece.width != 4 && piece.width != 8 && piece.width != 16) return none;
  const int i = log2(piece.width) - 2;
  if (piece.stride == 2 * piece.width) return table_.permute[i];
  return std::abs(piece.stride) < gather_reach ? table_.gather[i] : none;
}

const Kernels& Choose::transpose(const Piece& piece) const {
  const std::int64_t width = piece.width;
  const bool shape = width > 0 && piece.rows > 1 && piece.count > 1 && piece.row_stride == width && width < 64 &&
                     std::abs(piece.stride) >= piece.rows * width;
  if (!shape) return none;
  return is_word(width) ? table_.transpose[log2(width)] : table_.transpose_overlap[log2(width) - 1];
}

const Kernels& Choose::grouped(const Piece& piece) const { return piece.mask ? table_.record : none; }

const Kernels& Choose::streaming(const Piece& piece) const {
  const std::int64_t width = piece.width;
  if (width >= stream_wide_from) return table_.stream_wide;
  if (width == 16 || width == 32) return table_.stream_word[log2(width) - 2];
  if ((width == 4 || width == 8) && piece.stride == 2 * width) return table_.stream_word[log2(width) - 2];
  return none;
}

const Kernels& Choose::paced(const Piece& piece) const {
  // Strides that are multiples of 512 bytes use 8 of 64 sets, multiples of 1024 bytes use 4 or fewer. Unpacking 8-byte
  // blocks of an N^3 array of doubles, relative to one store per block: N = 64 (512 bytes) 0.35x with two stores, N =
  // 128 0.38x with four, N = 512 0.36x with four. Without a conflict two stores cost nothing, and four cost 1.3x.
  const std::int64_t stride = std::abs(piece.stride), width = piece.width;
  if (stride < 512 || stride % 512 != 0 || piece.count < paced_from || width < 4) return none;
  const int often = stride % 1024 == 0 ? 1 : 0;
  if (is_word(width)) return table_.paced_word[often][log2(width) - 2];
  return width > 8 && width < 64 ? table_.paced_overlap[often][log2(width) - 3] : none;
}

const Kernels& Choose::fastest(const Piece& piece, Direction direction) const {
  const std::int64_t width = piece.width;
  // With fewer columns than blocks per cache line, each column is a separate stream, which is read well in packed order
  // (words: 0.7x).
  if (piece.count * width >= 64 && transpose(piece).pack) return transpose(piece);
  if (direction == Direction::pack && piece.stride == 2 * width && gather(piece).pack) return gather(piece);
  if (direction == Direction::unpack && paced(piece).unpack) return paced(piece);
  if (piece.group >= grouped_from && grouped(piece).pack) return grouped(piece);
  return plain(piece);
}

namespace {

void set(Step& step, const Kernels& kernels, Direction direction) {
  step = {kernels.name, direction == Direction::pack ? kernels.pack : kernels.unpack};
}

/// Sets the step if the kernels have one for this direction.
bool set_if(Step& step, const Kernels& kernels, Direction direction) {
  if (!(direction == Direction::pack ? kernels.pack : kernels.unpack)) return false;
  set(step, kernels, direction);
  return true;
}

}  // namespace

void Choose::strided(Op& op) const {
  for (const Direction direction : {Direction::pack, Direction::unpack}) {
    const Piece& piece = op.piece;
    Step& whole = op.whole[direction];
    Step& row = op.row[direction];
    const Kernels* forced = &none;
    switch (family_) {
      case KernelFamily::gather: forced = &gather(piece); break;
      case KernelFamily::record: forced = &grouped(piece); break;
      case KernelFamily::transpose: forced = &transpose(piece); break;
      case KernelFamily::streaming:
        if (!transpose(piece).pack) forced = &streaming(piece);
        break;
      case KernelFamily::block_copy: forced = &table_.block_copy; break;
      case KernelFamily::word:
        if (is_word(piece.width)) forced = &plain(piece);
        break;
      case KernelFamily::overlap:
        if (piece.width > 2 && piece.width < 128 && !is_word(piece.width)) forced = &plain(piece);
        break;
      case KernelFamily::wide:
        if (piece.width > 64) forced = &table_.wide;
        break;
      default: break;
    }
    if (!set_if(whole, *forced, direction)) set(whole, fastest(piece, direction), direction);
    // A part of a row is a single row, which can't be transposed.
    row = whole;
    if (whole.name == transpose(piece).name) {
      Piece one_row = piece;
      one_row.rows = 1;
      set(row, fastest(one_row, direction), direction);
    }
  }
}

void Choose::record(Op& op) const {
  for (const Direction direction : {Direction::pack, Direction::unpack}) {
    const bool masked = table_.record.pack && op.piece.mask;
    const bool few = op.piece.rows * op.piece.count <= mask_up_to;
    const bool by_mask = masked && (few || family_ == KernelFamily::record);
    set(op.whole[direction], by_mask ? table_.record : table_.fields, direction);
  }
  op.row = op.whole;
}

void Choose::list(Op& op) const {
  const std::int64_t width = op.piece.width;
  const Kernels* kernels = &table_.list_copy;
  if (op.piece.lengths)
    kernels = &table_.list_mixed;
  else if (family_ == KernelFamily::block_copy)
    kernels = &table_.list_copy;
  else if (is_word(width))
    kernels = &table_.list_word[log2(width)];
  else if (width < 128)
    kernels = &table_.list_overlap[log2(width) - 1];
  else if (!memcpy_is_better(width, op.size))
    kernels = &table_.list_wide;
  for (const Direction direction : {Direction::pack, Direction::unpack}) set(op.whole[direction], *kernels, direction);
  op.row = op.whole;
  // A list sorted by width is not in packing order, so only whole rows can use it.
  if (!op.piece.sorted || family_ == KernelFamily::list) return;
  set(op.whole[Direction::pack], table_.sorted_list, Direction::pack);
  if (op.any_order) set(op.whole[Direction::unpack], table_.sorted_list, Direction::unpack);
}

}  // namespace bestride::inline kernels
