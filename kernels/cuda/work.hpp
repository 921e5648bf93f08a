// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work: what a kernel reads: an array of 64-bit words that lies in its parameters or in device memory.
//
//   word 0                   pieces | tiles << 32
//   words 1 .. pieces        first tile of the piece | its record's word << 32
//   records                  WorkPiece, then its WorkList if it has one, then its WorkLoops, inner to outer
//
// A tile is what one thread block does before it takes its next: `tile_words` words of one piece. Thread blocks go through all
// tiles of all pieces with the grid's stride, so the launch is sized to the work, not to the shapes.
#include <cstdint>

#include "kernels/cuda/index.hpp"

namespace bestride::cuda {

inline constexpr Number threads_per_block = 256;
/// Resident thread blocks a multiprocessor: leaves 80 registers a thread; with 64 the kernels spill.
inline constexpr Number blocks_per_multiprocessor = 3;
/// Words a thread has in flight. What H100 needs to fill its memory pipe is 32 KiB a multiprocessor: 768 resident threads with four
/// words of 16 bytes are 48. Words of 4 bytes and less come alone out of sectors of 32, which are what is in flight.
inline constexpr Number most_rounds = 4;
inline constexpr int most_loops = 8;
/// Loops of the fast path, where strides fit 32 bits: pieces with fewer get turns of a loop that never comes round.
inline constexpr int narrow_loops = 2;
/// Edge of a transposed tile, words; and its row in shared memory, one more against bank conflicts.
inline constexpr Number tile_edge = 32;
inline constexpr Number tile_pitch = 33;
/// What one bulk copy moves.
inline constexpr Number bulk_bytes = 8192;
/// Shared memory of a thread block: a tile of 8-byte words, or a bulk copy.
inline constexpr Number shared_bytes = tile_edge * tile_pitch * 8;
static_assert(shared_bytes >= bulk_bytes);

enum class WorkKind : std::uint8_t { words, uniform_list, mixed_list, transpose, bulk, ordered };

struct WorkPiece {
  std::uint64_t user;     ///< address of word 0
  std::uint64_t packed;   ///< likewise
  Number first_word;      ///< of the range to move (0 with transpose, bulk)
  Number words;           ///< in the range; with bulk the number of blocks, with transpose that of planes (turns above the first two loops)
  Divisor block;          ///< words in a block; with bulk chunks in a block; with transpose tiles across loop 0
  Number tile_words;      ///< words; with transpose and bulk 1
  Number block_bytes;     ///< bulk: of a block
  WorkKind kind;
  std::uint8_t width;     ///< log2 of the word's bytes
  std::uint8_t loops;
  std::uint8_t unpack : 1, narrow : 1;
};
static_assert(sizeof(WorkPiece) == 48);

/// A transpose has one for its second division.
struct WorkList {
  std::uint64_t offsets;   ///< std::int32_t or std::int64_t [entries], user bytes
  std::uint64_t starts;    ///< std::uint32_t [entries + 1], packed bytes; mixed lists and ordered ones
  std::uint64_t granules;  ///< std::uint32_t [], see index.hpp; mixed lists
  Divisor size;            ///< entries of a uniform list; words of a mixed one; ordered: entries; transpose: tiles along loop 1
  Number wide_offsets;     ///< 1: offsets are 64-bit
};
static_assert(sizeof(WorkList) == 40);
static_assert(sizeof(WorkLoop) == 32);

/// Kernel parameters: most launches need few; the limit of the driver is 4 KiB.
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
