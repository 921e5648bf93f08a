// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pieces: a layout as the kernels take it: strided pieces with their packed positions, and block lists.
//
// A tree becomes one piece per leaf: the loops above it, each with a stride on the user's side and one on the packed side, and the
// leaf itself, a block or a list of blocks. Nothing is reordered, since every piece says where its bytes stand in the packed buffer.
// Independent of any device.
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "datatype/layout.hpp"

namespace bestride::cuda {

/// A piece has fewer bytes than this, so that every number in a kernel fits 31 bits; longer ones are cut.
inline constexpr std::int64_t piece_limit = std::int64_t{1} << 31;

struct PieceLoop {
  std::int64_t count;          ///< 2 .. 2^31 - 1
  std::int64_t user_stride;    ///< bytes
  std::int64_t packed_stride;  ///< bytes; > 0, at least what the loops inside cover
};

struct Piece {
  std::int64_t user = 0;         ///< of the first byte, from the buffer address
  std::int64_t packed = 0;       ///< of the first byte, from the packed start
  std::int64_t block = 0;        ///< bytes of the block; with a list, of all its blocks together
  int list = -1;                 ///< in Pieces::lists, or -1
  std::vector<PieceLoop> loops;  ///< inner to outer, at most most_loops
  std::int64_t bytes() const noexcept;
};

struct BlockList {
  std::vector<std::int64_t> offsets;  ///< user side, of each block
  std::vector<std::int64_t> starts;   ///< packed side, of each block, and the end of the last
  std::int64_t uniform = 0;           ///< length of every block, or 0: they differ
};

struct Pieces {
  std::vector<Piece> pieces;
  std::vector<BlockList> lists;
  /// Unpacking has to keep the order: then `ordered` has every block, in order, if there are at most ordered_block_limit.
  bool overlaps = false;
  BlockList ordered;
};

/// Error: more pieces than a launch should carry (65536), or loops too deep over too many blocks. Such a layout is left to others.
Result<Pieces> pieces_of(const Layout& layout);

}  // namespace bestride::cuda
