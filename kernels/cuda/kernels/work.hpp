// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work: the input of the pack and unpack kernels. It is an array of 64-bit words, in the kernel parameters or in device
// memory:
//
//   word 0                   pieces | tiles << 32
//   words 1 .. pieces        first tile of the piece | word index of its record << 32
//   records                  WorkPiece, then its WorkList if it has one, then its WorkLoops, inner to outer
//
// A tile is the unit that a thread block processes at a time: `tile_words` words of one piece. Thread blocks go through
// all tiles of all pieces in a grid-stride loop, so the launch is sized to the amount of work, not to the shapes.
#include <cstdint>

#include "kernels/cuda/kernels/index.hpp"

namespace bestride::cuda {

inline constexpr Number threads_per_block = 256;
/// Resident thread blocks per multiprocessor. 3 leaves 80 registers per thread; with 64 registers the kernels spill.
inline constexpr Number blocks_per_multiprocessor = 3;
/// Words that a thread has in flight. An H100 needs 32 KiB in flight per multiprocessor to saturate its memory; 768
/// resident threads with four words of 16 bytes have 48 KiB. Isolated words of 4 bytes or less each need a sector of 32
/// bytes, and the sectors are what is in flight.
inline constexpr Number max_rounds = 4;
inline constexpr int max_loops = 8;
/// Loops of the fast path, in which all strides fit 32 bits. Pieces with fewer loops are padded with loops that stay at
/// iteration 0.
inline constexpr int narrow_loops = 2;
/// Edge of a transposed tile, in words, and the length of its row in shared memory: one word more, to avoid bank
/// conflicts.
inline constexpr Number tile_edge = 32;
inline constexpr Number tile_pitch = 33;
/// Bytes per bulk copy.
inline constexpr Number bulk_bytes = 8192;
/// Shared memory of a thread block, bytes: a tile of 8-byte words, or one bulk copy.
inline constexpr Number shared_bytes = tile_edge * tile_pitch * 8;
static_assert(shared_bytes >= bulk_bytes);

enum class WorkKind : std::uint8_t { words, uniform_list, mixed_list, transpose, bulk, ordered };

struct WorkPiece {
  std::uint64_t user;    ///< address of word 0
  std::uint64_t packed;  ///< address of packed word 0
  Number first_word;     ///< of the range to move (0 for transpose, bulk)
  Number words;          ///< in the range; not used by transpose and bulk
  Divisor block;         ///< words in a block; bulk: chunks in a block; transpose: tiles along loop 0
  Number tile_words;     ///< words; 1 for transpose and bulk
  Number block_bytes;    ///< bulk: bytes of a block
  WorkKind kind;
  std::uint8_t width;  ///< log2 of the word size in bytes
  std::uint8_t loops;
  std::uint8_t unpack : 1, narrow : 1;
};
static_assert(sizeof(WorkPiece) == 48);

/// A transpose also has one: its `size` is the divisor for tiles along loop 1.
struct WorkList {
  std::uint64_t offsets;  ///< std::int32_t or std::int64_t [entries], offsets in the user's buffer, bytes
  std::uint64_t
      starts;  ///< std::uint32_t [entries + 1], positions in the packed buffer, bytes; mixed and ordered lists
  std::uint64_t granules;  ///< std::uint32_t [], see index.hpp; mixed lists
  Divisor size;         ///< uniform list: entries; mixed list: words; ordered: entries; transpose: tiles along loop 1
  Number wide_offsets;  ///< 1: offsets are 64-bit
};
static_assert(sizeof(WorkList) == 40);
static_assert(sizeof(WorkLoop) == 32);

/// Kernel parameters. The driver's limit is 4 KiB, but most launches need far less.
struct SmallWork {
  std::uint64_t data[64];
};
struct LargeWork {
  std::uint64_t data[512];
};
static_assert(sizeof(LargeWork) == 4096);

inline constexpr const char* small_kernel = "bestride_move_small";
inline constexpr const char* large_kernel = "bestride_move_large";
inline constexpr const char* far_kernel = "bestride_move_far";

}  // namespace bestride::cuda
