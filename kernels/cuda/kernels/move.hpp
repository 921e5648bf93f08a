// SPDX-License-Identifier: Apache-2.0
#pragma once
// Move: the pack and unpack kernels, written as the code of one thread block. `ThreadBlock` is the block: its threads
// on the device (move.cu), a loop over them on the host (the tests' stand-in driver). Both run the code below.
//
//   team.each(f)         f(thread) for all threads, then a barrier; free_running(f): without a barrier
//   team.load<Word>(a)   the word at an address; team.store<Word>(a, value)
//   team.shared()        shared_bytes bytes, 128-byte aligned
//   team.bulk(to, from, n)   a bulk copy by all threads, with a barrier; false if the hardware has none
#include "kernels/cuda/kernels/index.hpp"
#include "kernels/cuda/kernels/work.hpp"

namespace bestride::cuda {

struct alignas(16) Word16 {
  std::uint64_t low, high;
};

/// One record of Work, split into its parts.
struct Record {
  const WorkPiece& piece;
  const WorkList* list;
  const WorkLoop* loops;
};

BESTRIDE_HOST_DEVICE Record record_at(const std::uint64_t* data, Number word) {
  const WorkPiece& piece = *reinterpret_cast<const WorkPiece*>(data + word);
  const bool listed = piece.kind != WorkKind::words && piece.kind != WorkKind::bulk;
  const std::uint64_t* after = data + word + sizeof(WorkPiece) / 8;
  return {piece, listed ? reinterpret_cast<const WorkList*>(after) : nullptr,
          reinterpret_cast<const WorkLoop*>(listed ? after + sizeof(WorkList) / 8 : after)};
}

/// The piece that contains a tile: the last piece whose first tile is <= `tile`.
BESTRIDE_HOST_DEVICE Number piece_of_tile(const std::uint64_t* data, Number tile) {
  Number low = 0, high = static_cast<Number>(data[0]);
  while (high - low > 1) {
    const Number middle = (low + high) / 2;
    if (static_cast<Number>(data[1 + middle]) <= tile)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// ---- Address of a word

template <bool narrow, int fixed>
BESTRIDE_HOST_DEVICE Position strided_position(const Record& record, Number word) {
  const Number block = quotient(word, record.piece.block);
  const std::int64_t within = static_cast<std::int64_t>(word - block * record.piece.block.divisor)
                              << record.piece.width;
  Position position{within, within};
  add_loops<narrow, fixed>(position, record.loops, record.piece.loops, block);
  return position;
}

/// List tables are in device memory, like the user's bytes.
template <class T, class ThreadBlock>
BESTRIDE_HOST_DEVICE T entry_at(ThreadBlock& team, std::uint64_t table, Number index) {
  return team.template load<T>(table + std::uint64_t{index} * sizeof(T));
}

template <class ThreadBlock>
BESTRIDE_HOST_DEVICE std::int64_t list_offset(ThreadBlock& team, const WorkList& list, Number entry) {
  return list.wide_offsets ? entry_at<std::int64_t>(team, list.offsets, entry)
                           : entry_at<std::int32_t>(team, list.offsets, entry);
}

/// The block of a mixed list that contains a packed byte: a binary search among the blocks of its granule.
template <class ThreadBlock>
BESTRIDE_HOST_DEVICE Number entry_of(ThreadBlock& team, const WorkList& list, Number position) {
  const Number granule = position >> granule_shift;
  Number low = entry_at<Number>(team, list.granules, granule),
         high = entry_at<Number>(team, list.granules, granule + 1) + 1;
  while (high - low > 1) {
    const Number middle = (low + high) / 2;
    if (entry_at<Number>(team, list.starts, middle) <= position)
      low = middle;
    else
      high = middle;
  }
  return low;
}

template <class ThreadBlock>
BESTRIDE_HOST_DEVICE Position list_position(ThreadBlock& team, const Record& record, Number word) {
  const WorkPiece& piece = record.piece;
  const WorkList& list = *record.list;
  Position position;
  Number turn;
  if (piece.kind == WorkKind::uniform_list) {
    const Number block = quotient(word, piece.block);
    turn = quotient(block, list.size);
    const Number entry = block - turn * list.size.divisor;
    const std::int64_t within = static_cast<std::int64_t>(word - block * piece.block.divisor) << piece.width;
    const std::int64_t start = static_cast<std::int64_t>(entry * piece.block.divisor) << piece.width;
    position = {list_offset(team, list, entry) + within, start + within};
  } else {
    turn = quotient(word, list.size);
    const Number packed = (word - turn * list.size.divisor) << piece.width;
    const Number entry = entry_of(team, list, packed);
    position = {list_offset(team, list, entry) + (packed - entry_at<Number>(team, list.starts, entry)), packed};
  }
  add_loops<false, -1>(position, record.loops, piece.loops, turn);
  return position;
}

struct StridedNarrow {
  template <class ThreadBlock>
  BESTRIDE_HOST_DEVICE static Position at(ThreadBlock& team, const Record& record, Number word) {
    return strided_position<true, narrow_loops>(record, word);
  }
};
struct StridedAny {
  template <class ThreadBlock>
  BESTRIDE_HOST_DEVICE static Position at(ThreadBlock& team, const Record& record, Number word) {
    return strided_position<false, -1>(record, word);
  }
};
struct Listed {
  template <class ThreadBlock>
  BESTRIDE_HOST_DEVICE static Position at(ThreadBlock& team, const Record& record, Number word) {
    return list_position(team, record, word);
  }
};

// ---- Moving a tile

/// Neighboring threads move neighboring words of the packed buffer. Each thread issues all its loads before its first
/// store.
template <class Word, class Where, class ThreadBlock>
BESTRIDE_HOST_DEVICE void move_words(ThreadBlock& team, const Record& record, Number tile) {
  const WorkPiece& piece = record.piece;
  const Number first = tile * piece.tile_words;
  const Number end = first + piece.tile_words < piece.words ? first + piece.tile_words : piece.words;
  const bool unpack = piece.unpack;
  team.free_running([&](Number thread) {
    Word value[max_rounds];
    std::uint64_t target[max_rounds];
    BESTRIDE_UNROLL
    for (Number k = 0; k < max_rounds; ++k) {
      const Number word = first + thread + k * threads_per_block;
      if (word < end) {
        const Position position = Where::at(team, record, piece.first_word + word);
        const std::uint64_t user = piece.user + static_cast<std::uint64_t>(position.user);
        const std::uint64_t packed = piece.packed + static_cast<std::uint64_t>(position.packed);
        target[k] = unpack ? user : packed;
        value[k] = team.template load<Word>(unpack ? packed : user);
      }
    }
    BESTRIDE_UNROLL
    for (Number k = 0; k < max_rounds; ++k)
      if (first + thread + k * threads_per_block < end) team.template store<Word>(target[k], value[k]);
  });
}

/// Moves a tile of tile_edge x tile_edge words. Loop 0 is contiguous in the packed buffer, loop 1 in the user's buffer.
/// Both buffers are accessed in whole rows; the transpose happens in shared memory.
template <class Word, class ThreadBlock>
BESTRIDE_HOST_DEVICE void move_transposed(ThreadBlock& team, const Record& record, Number tile) {
  const WorkPiece& piece = record.piece;
  const WorkLoop& across = record.loops[0];
  const WorkLoop& along = record.loops[1];
  const Number row_of_tiles = quotient(tile, piece.block);
  const Number plane = quotient(row_of_tiles, record.list->size);
  const Number first_across = (tile - row_of_tiles * piece.block.divisor) * tile_edge;
  const Number first_along = (row_of_tiles - plane * record.list->size.divisor) * tile_edge;
  Position origin{0, 0};
  add_loops<false, -1>(origin, record.loops + 2, piece.loops - 2, plane);
  const std::uint64_t user = piece.user + static_cast<std::uint64_t>(origin.user);
  const std::uint64_t packed = piece.packed + static_cast<std::uint64_t>(origin.packed);
  Word* shared = reinterpret_cast<Word*>(team.shared());
  constexpr Number rows = threads_per_block / tile_edge;

  const auto address = [&](bool of_user, Number i, Number j) {
    return of_user ? user + static_cast<std::uint64_t>(across.user_stride * i + along.user_stride * j)
                   : packed + static_cast<std::uint64_t>(across.packed_stride * i + along.packed_stride * j);
  };
  // Consecutive threads follow loop 1 in the user's buffer and loop 0 in the packed buffer.
  const auto pass = [&](Number thread, bool of_user, bool loading) {
    const Number x = thread % tile_edge, y = thread / tile_edge;
    BESTRIDE_UNROLL
    for (Number k = 0; k < tile_edge; k += rows) {
      const Number a = of_user ? y + k : x, b = of_user ? x : y + k;  // iterations of loops 0 and 1 in the tile
      if (first_across + a < across.count.divisor && first_along + b < along.count.divisor) {
        const std::uint64_t at = address(of_user, first_across + a, first_along + b);
        if (loading)
          shared[a * tile_pitch + b] = team.template load<Word>(at);
        else
          team.template store<Word>(at, shared[a * tile_pitch + b]);
      }
    }
  };
  const bool unpack = piece.unpack;
  team.each([&](Number thread) { pass(thread, !unpack, true); });
  team.each([&](Number thread) { pass(thread, unpack, false); });
}

/// Moves one chunk of a long block by the bulk copy engine, or in words of 16 bytes if there is none.
template <class ThreadBlock>
BESTRIDE_HOST_DEVICE void move_bulk(ThreadBlock& team, const Record& record, Number tile) {
  const WorkPiece& piece = record.piece;
  const Number block = quotient(tile, piece.block);
  const Number from = (tile - block * piece.block.divisor) * bulk_bytes;
  const Number bytes = piece.block_bytes - from < bulk_bytes ? piece.block_bytes - from : bulk_bytes;
  Position position{from, from};
  add_loops<false, -1>(position, record.loops, piece.loops, block);
  const std::uint64_t user = piece.user + static_cast<std::uint64_t>(position.user);
  const std::uint64_t packed = piece.packed + static_cast<std::uint64_t>(position.packed);
  const std::uint64_t target = piece.unpack ? user : packed;
  const std::uint64_t source = piece.unpack ? packed : user;
  if (team.bulk(target, source, bytes)) return;
  team.free_running([&](Number thread) {
    for (Number at = thread * 16; at < bytes; at += threads_per_block * 16)
      team.template store<Word16>(target + at, team.template load<Word16>(source + at));
  });
}

/// Moves all blocks of a layout one after the other, with a barrier between them: if two blocks contain the same byte,
/// the later one determines its value.
template <class Word, class ThreadBlock>
BESTRIDE_HOST_DEVICE void move_in_order(ThreadBlock& team, const Record& record) {
  const WorkPiece& piece = record.piece;
  const WorkList& list = *record.list;
  const Number range_end = piece.first_word + piece.words;
  const bool unpack = piece.unpack;
  for (Number entry = 0; entry < list.size.divisor; ++entry) {
    const Number begin = entry_at<Number>(team, list.starts, entry) >> piece.width;
    const Number end = entry_at<Number>(team, list.starts, entry + 1) >> piece.width;
    if (end <= piece.first_word) continue;
    if (begin >= range_end) return;
    const Number from = begin > piece.first_word ? begin : piece.first_word;
    const Number to = end < range_end ? end : range_end;
    const std::uint64_t user = piece.user + static_cast<std::uint64_t>(list_offset(team, list, entry));
    team.each([&](Number thread) {
      for (Number word = from + thread; word < to; word += threads_per_block) {
        const std::uint64_t at = user + (static_cast<std::uint64_t>(word - begin) << piece.width);
        const std::uint64_t packed = piece.packed + (static_cast<std::uint64_t>(word) << piece.width);
        team.template store<Word>(unpack ? at : packed, team.template load<Word>(unpack ? packed : at));
      }
    });
  }
}

// ---- Selecting the kernel

template <class Word, class ThreadBlock>
BESTRIDE_HOST_DEVICE void move_tile_of(ThreadBlock& team, const Record& record, Number tile) {
  const WorkPiece& piece = record.piece;
  switch (piece.kind) {
    case WorkKind::words:
      if (piece.narrow) return move_words<Word, StridedNarrow>(team, record, tile);
      return move_words<Word, StridedAny>(team, record, tile);
    case WorkKind::uniform_list:
    case WorkKind::mixed_list: return move_words<Word, Listed>(team, record, tile);
    case WorkKind::transpose:
      if constexpr (sizeof(Word) <= 8) move_transposed<Word>(team, record, tile);
      return;
    case WorkKind::bulk: return;
    case WorkKind::ordered: return move_in_order<Word>(team, record);
  }
}

/// Executes all tiles of one thread block. `data`: see Work.
template <class ThreadBlock>
BESTRIDE_HOST_DEVICE void move(ThreadBlock& team, const std::uint64_t* data, Number block, Number grid) {
  const Number tiles = static_cast<Number>(data[0] >> 32);
  for (Number tile = block; tile < tiles; tile += grid) {
    const std::uint64_t entry = data[1 + piece_of_tile(data, tile)];
    const Record record = record_at(data, static_cast<Number>(entry >> 32));
    const Number in_piece = tile - static_cast<Number>(entry);
    if (record.piece.kind == WorkKind::bulk) {
      move_bulk(team, record, in_piece);
      continue;
    }
    switch (record.piece.width) {
      case 0: move_tile_of<std::uint8_t>(team, record, in_piece); break;
      case 1: move_tile_of<std::uint16_t>(team, record, in_piece); break;
      case 2: move_tile_of<std::uint32_t>(team, record, in_piece); break;
      case 3: move_tile_of<std::uint64_t>(team, record, in_piece); break;
      default: move_tile_of<Word16>(team, record, in_piece); break;
    }
  }
}

}  // namespace bestride::cuda
