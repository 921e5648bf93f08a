// SPDX-License-Identifier: Apache-2.0
#pragma once
// Encode: converts the pieces of one pack or unpack to the records that the kernels read: the kernel, the word size,
// the number of tiles.
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "kernels/cuda/device/device_layout.hpp"
#include "kernels/cuda/kernels/work.hpp"
#include "kernels/cuda/launch/batch.hpp"

namespace bestride::cuda {

/// A piece before it becomes a record.
struct EncodedPiece {
  WorkPiece piece{};
  WorkList list{};
  bool has_list = false;
  std::vector<WorkLoop> loops;
  std::uint64_t tiles =
      0;  ///< at one word per thread, for the kinds that support more words per thread (WorkPiece::tile_words != 1)
};

/// Appends the pieces of `item` that have bytes in its range. Error: an unpack whose order cannot be kept.
Result<Done> encode(const BatchItem& item, const KernelOptions& options, std::vector<EncodedPiece>& out);

/// For example "words 16": the kernel of a piece and its word size in bytes.
std::string kernel_text(const WorkPiece& piece);

/// Number of bytes of a piece that are before `position` in the packed buffer, where position 0 is the first byte of
/// the piece. For cutting ranges.
std::int64_t bytes_before(const Piece& piece, std::int64_t position) noexcept;

/// Writes all pieces into one array (work.hpp). Tiles are sized so that `multiprocessors` have enough of them; *tiles
/// receives their number.
std::vector<std::uint64_t> assemble(std::vector<EncodedPiece>& pieces, int multiprocessors,
                                    const KernelOptions& options, std::uint64_t* tiles);

}  // namespace bestride::cuda
