// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/device/pieces.hpp"

#include <algorithm>

#include "datatype/build.hpp"
#include "kernels/cuda/device/options.hpp"
#include "kernels/cuda/device/overlap.hpp"
#include "kernels/cuda/kernels/work.hpp"

namespace bestride::cuda {
namespace {

constexpr std::size_t max_pieces = 65536;
/// A repeated record of short blocks, of up to this many bytes, becomes one list, not one piece per field: its fields
/// share sectors and are adjacent when packed. Longer blocks are better moved as pieces, in wide words.
constexpr std::int64_t record_bytes = 2048;

/// Position of a node and the loops around it, outer to inner.
struct Frame {
  std::int64_t user;
  std::int64_t packed;
  std::vector<PieceLoop> loops;
};

bool only_blocks(const Node& node) {
  return std::all_of(node.items.begin(), node.items.end(),
                     [](const Item& item) { return item.node->kind == Node::Kind::block; });
}

BlockList list_of(const Node& node) {
  BlockList list;
  std::int64_t position = 0;
  list.uniform = -1;
  for_each_block(node, 0, [&](std::int64_t offset, std::int64_t length) {
    list.offsets.push_back(offset);
    list.starts.push_back(position);
    position += length;
    list.uniform = list.uniform < 0 || list.uniform == length ? length : 0;
    return true;
  });
  list.starts.push_back(position);
  return list;
}

class Builder {
 public:
  explicit Builder(Pieces& out) : out_(out) {}

  bool walk(const Node& node, Frame frame) {
    switch (node.kind) {
      case Node::Kind::block: return block(node.size, frame);
      case Node::Kind::list: return list(list_of(node), frame);
      case Node::Kind::loop: return loop(node, std::move(frame));
      case Node::Kind::sequence: return sequence(node, std::move(frame));
    }
    return false;
  }

 private:
  bool loop(const Node& node, Frame frame) {
    if (node.stride == 0 && node.count >= piece_limit) return false;
    if (frame.loops.size() == max_loops) {  // deeper than the kernels support: the rest becomes a list
      if (node.blocks > ordered_block_limit) return false;
      return list(list_of(node), frame);
    }
    frame.loops.push_back({node.count, node.stride, node.body->size});
    return walk(*node.body, std::move(frame));
  }

  bool sequence(const Node& node, Frame frame) {
    if (!frame.loops.empty() && node.size <= record_bytes && only_blocks(node)) return list(list_of(node), frame);
    std::int64_t packed = frame.packed;
    for (const Item& item : node.items) {
      if (!walk(*item.node, {frame.user + item.offset, packed, frame.loops})) return false;
      packed += item.node->size;
    }
    return true;
  }

  bool block(std::int64_t length, const Frame& frame) {
    if (length < piece_limit) return leaf(length, -1, frame);
    constexpr std::int64_t part = piece_limit / 2;
    for (std::int64_t at = 0; at < length; at += part)
      if (!leaf(std::min(part, length - at), -1, {frame.user + at, frame.packed + at, frame.loops})) return false;
    return true;
  }

  /// Splits the list if its packed bytes exceed 31 bits. A single block that exceeds them becomes a piece of its own.
  bool list(const BlockList& all, const Frame& frame) {
    const std::size_t count = all.offsets.size();
    for (std::size_t first = 0; first < count;) {
      std::size_t last = first + 1;
      while (last < count && all.starts[last + 1] - all.starts[first] < piece_limit) ++last;
      const std::int64_t start = all.starts[first], bytes = all.starts[last] - start;
      const Frame here{frame.user, frame.packed + start, frame.loops};
      if (bytes >= piece_limit) {
        if (!block(bytes, {here.user + all.offsets[first], here.packed, here.loops})) return false;
      } else {
        BlockList part;
        part.uniform = all.uniform;
        part.offsets.assign(all.offsets.begin() + static_cast<std::ptrdiff_t>(first),
                            all.offsets.begin() + static_cast<std::ptrdiff_t>(last));
        for (std::size_t i = first; i <= last; ++i) part.starts.push_back(all.starts[i] - start);
        out_.lists.push_back(std::move(part));
        if (!leaf(bytes, static_cast<int>(out_.lists.size()) - 1, here)) return false;
      }
      first = last;
    }
    return true;
  }

  /// Splits loops until every piece is below the limit.
  bool leaf(std::int64_t bytes, int list, const Frame& frame) {
    if (out_.pieces.size() >= max_pieces) return false;
    for (std::size_t depth = frame.loops.size(); depth-- > 0;) {
      const std::int64_t count = frame.loops[depth].count;
      if (bytes >= piece_limit || count > (piece_limit - 1) / bytes) return cut(depth, bytes, list, frame);
      bytes *= count;
    }
    Piece piece;
    piece.user = frame.user;
    piece.packed = frame.packed;
    piece.list = list;
    piece.block = bytes;
    for (const PieceLoop& loop : frame.loops) piece.block /= loop.count;
    piece.loops.assign(frame.loops.rbegin(), frame.loops.rend());
    out_.pieces.push_back(std::move(piece));
    return true;
  }

  /// Splits the iterations of the loop at `depth` into portions that fit the limit, at `inside` bytes per iteration.
  bool cut(std::size_t depth, std::int64_t inside, int list, const Frame& frame) {
    const std::int64_t portion = (piece_limit - 1) / inside;
    const PieceLoop loop = frame.loops[depth];
    std::int64_t leaf_bytes = inside;
    for (std::size_t k = depth + 1; k < frame.loops.size(); ++k) leaf_bytes /= frame.loops[k].count;
    for (std::int64_t turn = 0; turn < loop.count; turn += portion) {
      const std::int64_t count = std::min(portion, loop.count - turn);
      Frame part{frame.user + turn * loop.user_stride, frame.packed + turn * loop.packed_stride, frame.loops};
      if (count == 1)
        part.loops.erase(part.loops.begin() + static_cast<std::ptrdiff_t>(depth));
      else
        part.loops[depth].count = count;
      if (!leaf(leaf_bytes, list, part)) return false;
    }
    return true;
  }

  Pieces& out_;
};

}  // namespace

std::int64_t Piece::bytes() const noexcept {
  std::int64_t all = block;
  for (const PieceLoop& loop : loops) all *= loop.count;
  return all;
}

Result<Pieces> pieces_of(const Layout& layout) {
  Pieces out;
  if (!layout.root()) return out;
  if (!Builder(out).walk(*layout.root(), {layout.offset(), 0, {}}))
    return Error{"datatype too irregular for the GPU kernels (more than 65536 pieces); left to the MPI library"};
  out.overlaps = may_overlap(layout);
  if (out.overlaps && layout.blocks() <= ordered_block_limit && layout.size() < piece_limit) {
    out.ordered = list_of(*layout.root());
    for (std::int64_t& offset : out.ordered.offsets) offset += layout.offset();
  }
  return out;
}

}  // namespace bestride::cuda
