// SPDX-License-Identifier: Apache-2.0
#pragma once
// Encode: the pieces of one pack or unpack as the records the kernels read: which kernel, how wide a word, how many tiles.
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "kernels/cuda/batch.hpp"
#include "kernels/cuda/plan.hpp"
#include "kernels/cuda/work.hpp"

namespace bestride::cuda {

/// A piece on its way to a record.
struct EncodedPiece {
  WorkPiece piece{};
  WorkList list{};
  bool has_list = false;
  std::vector<WorkLoop> loops;
  std::uint64_t tiles = 0;  ///< of one round a thread, for the kinds that can take more (WorkPiece::tile_words != 1)
};

/// Appends the pieces of `item` that have bytes in its range. Error: an unpack whose order can't be kept.
Result<Done> encode(const BatchItem& item, const KernelOptions& options, std::vector<EncodedPiece>& out);

/// "words 16": the kernel of a piece and its word, bytes.
std::string kernel_text(const WorkPiece& piece);

/// Bytes of a piece that stand before `position` in the packed buffer, counted from the piece's first. For cutting ranges.
std::int64_t bytes_before(const Piece& piece, std::int64_t position) noexcept;

/// The whole as one array (work.hpp), tiles sized so that `multiprocessors` have enough of them; *tiles: how many.
std::vector<std::uint64_t> assemble(std::vector<EncodedPiece>& pieces, int multiprocessors, const KernelOptions& options, std::uint64_t* tiles);

}  // namespace bestride::cuda
