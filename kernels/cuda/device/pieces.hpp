// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces: a layout in the form that the kernels take: strided pieces with their packed positions, and block lists.
//
// Each leaf of the tree becomes one piece: the loops above the leaf, each with a stride in the user's buffer and one in
// the packed buffer, and the leaf itself, a block or a list of blocks. The order of pieces does not matter, since every
// piece states the position of its bytes in the packed buffer. Independent of any device.
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "datatype/layout.hpp"

namespace bestride::cuda {

/// A piece has fewer bytes than this, so that every count in a kernel fits 31 bits. Longer pieces are cut.
inline constexpr std::int64_t piece_limit = std::int64_t{1} << 31;

struct PieceLoop {
  std::int64_t count;          ///< 2 .. 2^31 - 1
  std::int64_t user_stride;    ///< bytes
  std::int64_t packed_stride;  ///< bytes; > 0, and at least the size of the inner loops
};

struct Piece {
  std::int64_t user = 0;         ///< of the first byte, relative to the buffer address
  std::int64_t packed = 0;       ///< of the first byte, relative to the start of the packed buffer
  std::int64_t block = 0;        ///< bytes of the block; with a list, of all its blocks together
  int list = -1;                 ///< index in Pieces::lists, or -1
  std::vector<PieceLoop> loops;  ///< inner to outer, at most max_loops
  std::int64_t bytes() const noexcept;
};

struct BlockList {
  std::vector<std::int64_t> offsets;  ///< of each block in the user's buffer
  std::vector<std::int64_t> starts;   ///< of each block in the packed buffer, and the end of the last one
  std::int64_t uniform = 0;           ///< length of every block, or 0 if the lengths differ
};

struct Pieces {
  std::vector<Piece> pieces;
  std::vector<BlockList> lists;
  /// If true, an unpack must keep the order. `ordered` then has every block, in order, if there are at most
  /// ordered_block_limit blocks.
  bool overlaps = false;
  BlockList ordered;
};

/// Error: more pieces than one launch supports (65536), or loops nested too deeply over too many blocks. Such a layout
/// is not handled by the kernels.
Result<Pieces> pieces_of(const Layout& layout);

}  // namespace bestride::cuda
