// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/launch/encode.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace bestride::cuda {
namespace {

/// Minimum access size of device memory, bytes: words that are closer together than this are loaded together anyway.
constexpr std::int64_t sector = 32;

/// log2 of the widest word of 1 to 16 bytes that divides every address and length in `bits`.
std::uint8_t width_of(std::uint64_t bits) {
  return static_cast<std::uint8_t>(std::min(4, std::countr_zero(bits | 16)));
}

bool fits_32(std::int64_t x) {
  return x >= std::numeric_limits<std::int32_t>::min() && x <= std::numeric_limits<std::int32_t>::max();
}

WorkLoop loop_of(const PieceLoop& loop) {
  return {loop.user_stride, loop.packed_stride, divisor_of(static_cast<Number>(loop.count)), 0};
}

class Encoder {
 public:
  Encoder(const BatchItem& item, const KernelOptions& options, std::vector<EncodedPiece>& out)
      : item_(item),
        device_layout_(*item.device_layout),
        options_(options),
        out_(out),
        last_(item.last < 0 ? device_layout_.size() : item.last) {
    // A range must not begin or end inside a word.
    range_bits_ = item.first == 0 && last_ == device_layout_.size()
                      ? 0
                      : static_cast<std::uint64_t>(item.first | (last_ == device_layout_.size() ? 0 : last_));
  }

  Result<Done> run() {
    const bool in_order = item_.direction == Direction::unpack && device_layout_.overlaps();
    if (in_order && !device_layout_.ordered())
      return Error{"unpacking a datatype of more than 4194304 blocks that overlap, or may; left to the MPI library"};
    if (in_order || (options_.kernel == GpuKernel::ordered && device_layout_.ordered()))
      ordered();
    else
      for (const Piece& piece : device_layout_.pieces()) strided_or_listed(piece);
    return Done{};
  }

 private:
  std::uint64_t packed_start() const { return item_.packed - static_cast<std::uint64_t>(item_.first); }
  bool forced(GpuKernel kernel) const { return options_.kernel == kernel; }
  std::uint8_t width(std::uint64_t bits) const {
    return forced(GpuKernel::bytes) ? 0 : width_of(bits | range_bits_ | packed_start());
  }

  EncodedPiece begin(const Piece& piece) const {
    EncodedPiece out;
    out.piece.user = item_.user + static_cast<std::uint64_t>(piece.user);
    out.piece.packed = packed_start() + static_cast<std::uint64_t>(piece.packed);
    out.piece.unpack = item_.direction == Direction::unpack;
    return out;
  }

  void ordered() {
    EncodedPiece out = begin({});
    const UploadedList& list = *device_layout_.ordered();
    out.piece.kind = WorkKind::ordered;
    out.piece.width = width(device_layout_.list_bits(-1) | item_.user);
    out.piece.block = divisor_of(1);
    out.piece.first_word = static_cast<Number>(item_.first >> out.piece.width);
    out.piece.words = static_cast<Number>((last_ - item_.first) >> out.piece.width);
    out.piece.tile_words = 1;
    out.has_list = true;
    out.list = {list.offsets, list.starts, 0, divisor_of(list.entries), list.wide};
    out.list.size.divisor = list.entries;
    out.tiles = 1;
    if (out.piece.words > 0) out_.push_back(std::move(out));
  }

  void strided_or_listed(const Piece& piece) {
    const std::int64_t from = bytes_before(piece, item_.first - piece.packed),
                       to = bytes_before(piece, last_ - piece.packed);
    if (from == to) return;
    EncodedPiece out = begin(piece);
    std::uint64_t bits = out.piece.user | static_cast<std::uint64_t>(piece.packed);
    for (const PieceLoop& loop : piece.loops) {
      bits |= static_cast<std::uint64_t>(loop.user_stride) | static_cast<std::uint64_t>(loop.packed_stride);
      out.loops.push_back(loop_of(loop));
    }
    bits |= piece.list < 0 ? static_cast<std::uint64_t>(piece.block) : device_layout_.list_bits(piece.list);
    out.piece.width = width(bits);
    out.piece.loops = static_cast<std::uint8_t>(out.loops.size());
    const bool whole = from == 0 && to == piece.bytes();
    if (whole && piece.list < 0 && (transpose(piece, out) || bulk(piece, out))) return out_.push_back(std::move(out));
    out.piece.first_word = static_cast<Number>(from >> out.piece.width);
    out.piece.words = static_cast<Number>((to - from) >> out.piece.width);
    if (piece.list < 0)
      strided(piece, out);
    else
      listed(piece, out);
    out.piece.tile_words = threads_per_block;
    out.tiles = (std::uint64_t{out.piece.words} + threads_per_block - 1) / threads_per_block;
    out_.push_back(std::move(out));
  }

  void strided(const Piece& piece, EncodedPiece& out) const {
    out.piece.kind = WorkKind::words;
    out.piece.block = divisor_of(static_cast<Number>(piece.block >> out.piece.width));
    out.piece.narrow = piece.loops.size() <= narrow_loops &&
                       std::all_of(piece.loops.begin(), piece.loops.end(), [](const PieceLoop& loop) {
                         return fits_32(loop.user_stride) && fits_32(loop.packed_stride);
                       });
    if (out.piece.narrow)
      out.loops.resize(narrow_loops, {0, 0, divisor_of(2), 0});  // only iteration 0 of these loops is executed
  }

  void listed(const Piece& piece, EncodedPiece& out) const {
    const UploadedList& list = device_layout_.uploaded(piece.list);
    const std::int64_t uniform = device_layout_.list(piece.list).uniform;
    out.has_list = true;
    out.list = {list.offsets, list.starts, list.granules, {}, list.wide};
    out.piece.kind = uniform != 0 ? WorkKind::uniform_list : WorkKind::mixed_list;
    out.piece.block = divisor_of(uniform != 0 ? static_cast<Number>(uniform >> out.piece.width) : 1);
    out.list.size = divisor_of(uniform != 0 ? list.entries : static_cast<Number>(piece.block >> out.piece.width));
  }

  /// Selects the transpose kernel if words are isolated along the inner loop of the packed buffer and contiguous along
  /// another loop.
  bool transpose(const Piece& piece, EncodedPiece& out) const {
    const bool wanted = forced(GpuKernel::transpose);
    if ((!wanted && !forced(GpuKernel::automatic)) || piece.loops.size() < 2) return false;
    if (piece.block > 8 || piece.block != std::int64_t{1} << out.piece.width) return false;
    const std::int64_t inner = std::abs(piece.loops[0].user_stride);
    if (inner == piece.block || (!wanted && (inner < sector || piece.loops[0].count < options_.transpose_turns)))
      return false;
    const auto together = std::find_if(out.loops.begin() + 1, out.loops.end(),
                                       [&](const WorkLoop& loop) { return loop.user_stride == piece.block; });
    if (together == out.loops.end() ||
        (!wanted && together->count.divisor < static_cast<Number>(options_.transpose_turns)))
      return false;
    std::rotate(out.loops.begin() + 1, together, together + 1);
    const auto tiles = [](const WorkLoop& loop) { return (loop.count.divisor + tile_edge - 1) / tile_edge; };
    out.has_list = true;
    out.piece.kind = WorkKind::transpose;
    out.piece.block = divisor_of(tiles(out.loops[0]));
    out.list.size = divisor_of(tiles(out.loops[1]));
    out.piece.words = out.piece.tile_words = 1;
    out.tiles = std::uint64_t{tiles(out.loops[0])} * tiles(out.loops[1]);
    for (std::size_t k = 2; k < out.loops.size(); ++k) out.tiles *= out.loops[k].count.divisor;
    return true;
  }

  bool bulk(const Piece& piece, EncodedPiece& out) const {
    const std::int64_t from = options_.bulk_from > 0 ? options_.bulk_from : item_.bulk_from;
    const bool wanted = forced(GpuKernel::bulk) || (forced(GpuKernel::automatic) && from > 0 && piece.block >= from);
    if (!wanted || out.piece.width != 4) return false;
    out.piece.kind = WorkKind::bulk;
    const std::uint64_t chunks = static_cast<std::uint64_t>((piece.block + bulk_bytes - 1) / bulk_bytes);
    out.piece.block = divisor_of(static_cast<Number>(chunks));
    out.piece.block_bytes = static_cast<Number>(piece.block);
    out.piece.tile_words = 1;
    out.tiles = chunks * static_cast<std::uint64_t>(piece.bytes() / piece.block);
    return true;
  }

  const BatchItem& item_;
  const DeviceLayout& device_layout_;
  const KernelOptions& options_;
  std::vector<EncodedPiece>& out_;
  const std::int64_t last_;
  std::uint64_t range_bits_ = 0;
};

template <class T>
void append(std::vector<std::uint64_t>& data, const T& record) {
  const std::size_t at = data.size();
  data.resize(at + sizeof record / 8);
  std::memcpy(data.data() + at, &record, sizeof record);
}

}  // namespace

std::int64_t bytes_before(const Piece& piece, std::int64_t position) noexcept {
  if (position <= 0) return 0;
  std::int64_t inside = piece.bytes(), before = 0;
  for (auto loop = piece.loops.rbegin(); loop != piece.loops.rend(); ++loop) {
    inside /= loop->count;
    const std::int64_t turn = position / loop->packed_stride;
    if (turn >= loop->count) return before + inside * loop->count;
    before += turn * inside;
    position -= turn * loop->packed_stride;
  }
  return before + std::min(position, piece.block);
}

std::string kernel_text(const WorkPiece& piece) {
  const std::string width = " " + std::to_string(1 << piece.width);
  switch (piece.kind) {
    case WorkKind::words: return "words" + width;
    case WorkKind::uniform_list: return "list" + width;
    case WorkKind::mixed_list: return "mixed list" + width;
    case WorkKind::transpose: return "transpose" + width;
    case WorkKind::bulk: return "bulk";
    case WorkKind::ordered: return "ordered" + width;
  }
  return "";
}

Result<Done> encode(const BatchItem& item, const KernelOptions& options, std::vector<EncodedPiece>& out) {
  return Encoder(item, options, out).run();
}

std::vector<std::uint64_t> assemble(std::vector<EncodedPiece>& pieces, int multiprocessors,
                                    const KernelOptions& options, std::uint64_t* tiles) {
  // Use several words per thread only if enough thread blocks remain to fill the device.
  std::uint64_t all = 0;
  for (const EncodedPiece& one : pieces) all += one.tiles;
  const std::uint64_t enough = static_cast<std::uint64_t>(multiprocessors) * blocks_per_multiprocessor;
  const Number most = options.rounds > 0 ? std::min(max_rounds, static_cast<Number>(options.rounds)) : max_rounds;
  Number rounds = 1;
  while (rounds < most && all / (2 * rounds) >= enough) rounds *= 2;

  std::vector<std::uint64_t> data(1 + pieces.size());
  *tiles = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EncodedPiece& one = pieces[i];
    data[1 + i] = *tiles | static_cast<std::uint64_t>(data.size()) << 32;
    if (one.piece.tile_words != 1) {
      one.piece.tile_words *= rounds;
      one.tiles = (std::uint64_t{one.piece.words} + one.piece.tile_words - 1) / one.piece.tile_words;
    }
    *tiles += one.tiles;
    append(data, one.piece);
    if (one.has_list) append(data, one.list);
    for (const WorkLoop& loop : one.loops) append(data, loop);
  }
  data[0] = pieces.size() | *tiles << 32;
  return data;
}

}  // namespace bestride::cuda
