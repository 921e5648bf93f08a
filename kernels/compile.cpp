// SPDX-License-Identifier: Apache-2.0
// Compiles a node tree into a program: decides which parts become one kernel call.
#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "datatype/build.hpp"
#include "kernels/choose.hpp"
#include "kernels/program.hpp"

namespace bestride::inline kernels {
namespace {

constexpr std::int64_t line = 64;
/// A loop body of at most this many blocks of any shape is executed as one record or list per iteration. For larger
/// bodies one kernel call per part is cheap enough (a call costs about as much as four short blocks).
constexpr std::int64_t flat_blocks = 32;
constexpr std::int64_t flat_bytes = 2048;
constexpr std::int64_t short_loop = 8;
/// Maximum mean block length, bytes, for sorting a mixed list by width. For longer blocks a branch misprediction on the
/// length does not matter.
constexpr std::int64_t sorted_mean = 128;
/// Lists longer than this are sorted only if their offsets are ascending: checking whether blocks overlap would cost
/// more than committing the type.
constexpr std::int64_t overlap_check_limit = 1 << 16;

struct Run {
  std::int64_t offset;
  std::int64_t length;
};

bool disjoint(std::vector<Run> runs) {
  const auto by_offset = [](const Run& a, const Run& b) { return a.offset < b.offset; };
  if (!std::is_sorted(runs.begin(), runs.end(), by_offset)) {
    if (static_cast<std::int64_t>(runs.size()) > overlap_check_limit) return false;
    std::sort(runs.begin(), runs.end(), by_offset);
  }
  for (std::size_t i = 1; i < runs.size(); ++i)
    if (runs[i].offset < runs[i - 1].offset + runs[i - 1].length) return false;
  return true;
}

/// Cuts `length` into exact moves of powers of two; the last two may overlap. Calls visit(offset from the start of the
/// run, width).
template <class Visit>
void cut(std::int64_t length, Visit&& visit) {
  std::int64_t at = 0;
  for (; length - at >= line; at += line) visit(at, line);
  const std::int64_t rest = length - at;
  if (rest == 0) return;
  if (at > 0) return visit(length - line, line);
  const std::int64_t half = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rest)));
  visit(0, half);
  if (rest > half) visit(rest - half, half);
}

std::uint64_t ones(std::int64_t n) { return n >= line ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1; }

class Compiler {
 public:
  explicit Compiler(const PackerOptions& options) : choose_(options) {}

  std::unique_ptr<Op> compile(const Node& node) const {
    switch (node.kind) {
      case Node::Kind::block: return strided(node.size, nullptr, nullptr);
      case Node::Kind::loop: return loops(node);
      case Node::Kind::list: return list(node, nullptr);
      case Node::Kind::sequence: break;
    }
    if (small(node)) return flat(node, nullptr, nullptr);
    return sequence(node);
  }

 private:
  std::unique_ptr<Op> loops(const Node& node) const {
    // A loop whose body is a unit (block, record, list) becomes one piece with it, optionally with one more loop around
    // it.
    const Node& body = *node.body;
    if (auto op = unit_in(body, &node, nullptr)) return op;
    if (body.kind == Node::Kind::loop) {
      if (auto op = unit_in(*body.body, &body, &node)) return op;
    }
    auto op = std::make_unique<Op>();
    op->kind = Op::Kind::loop;
    op->size = node.size;
    op->count = node.count;
    op->stride = node.stride;
    op->body = compile(body);
    return op;
  }

  /// The piece for outer{inner{unit}} if `unit` is a unit, otherwise null; outer may be null.
  std::unique_ptr<Op> unit_in(const Node& unit, const Node* inner, const Node* outer) const {
    if (unit.kind == Node::Kind::block) return strided(unit.size, inner, outer);
    // Two loops over a block are a piece already, but a short inner loop over short blocks is better unrolled into the
    // fields of a record. (Of long blocks not: 58 times 3 blocks of 464 bytes took 16.7 us in a message instead
    // of 12.9.)
    const bool nest = unit.kind == Node::Kind::loop && unit.body->kind == Node::Kind::block;
    if (nest && !outer &&
        (unit.count > short_loop || unit.body->size > line || inner->count < 2 * unit.count ||
         std::abs(inner->stride) < unit.high - unit.low))
      return nullptr;
    if (small(unit)) return flat(unit, inner, outer);
    if (!outer && unit.kind == Node::Kind::list) return list(unit, inner);  // a list already contains one loop
    return nullptr;
  }

  static bool small(const Node& unit) { return unit.blocks <= flat_blocks && unit.size <= flat_bytes; }

  static void set_loops(Op& op, const Node* inner, const Node* outer) {
    op.size = op.piece.width;
    if (inner) {
      op.piece.count = inner->count;
      op.piece.stride = inner->stride;
      op.size = inner->size;
    }
    if (outer) {
      op.piece.rows = outer->count;
      op.piece.row_stride = outer->stride;
      op.size = outer->size;
    }
  }

  std::unique_ptr<Op> strided(std::int64_t width, const Node* inner, const Node* outer) const {
    auto op = std::make_unique<Op>();
    op->piece.width = width;
    set_loops(*op, inner, outer);
    if (inner && inner->stride >= width && inner->stride <= line / 2) set_mask(op->piece, ones(width), width);
    choose_.strided(*op);
    return op;
  }

  static void set_mask(Piece& piece, std::uint64_t mask, std::int64_t span) {
    piece.mask = mask;
    piece.group_mask = mask;
    if (piece.stride < span) return;  // overlapping records are moved one by one, in order
    piece.group = 1 + (line - span) / piece.stride;
    for (std::int64_t i = 1; i < piece.group; ++i) piece.group_mask |= mask << (i * piece.stride);
  }

  /// A few blocks of any shape, in up to two loops: a record if its parts may be moved in any order, otherwise a list
  /// in order.
  std::unique_ptr<Op> flat(const Node& unit, const Node* inner, const Node* outer) const {
    std::vector<Run> runs;
    for_each_block(unit, 0, [&](std::int64_t offset, std::int64_t length) {
      runs.push_back({offset, length});
      return true;
    });
    const std::int64_t span = unit.high - unit.low;
    const bool apart = !inner || std::abs(inner->stride) >= span;
    std::unique_ptr<Op> op;
    // A single record field by field would need many calls for little work, unless one call with its mask moves it.
    const bool repeated = inner || (choose_.masks() && unit.high - unit.low <= line);
    if (apart && repeated && disjoint(runs)) {
      op = std::make_unique<Op>();
      op->piece.width = unit.size;
      set_loops(*op, inner, outer);
      set_record(*op, unit, runs);
      choose_.record(*op);
      return op;
    }
    op = list_of(runs, unit.size, inner);
    if (!outer) return op;
    auto loop = std::make_unique<Op>();
    loop->kind = Op::Kind::loop;
    loop->size = outer->size;
    loop->count = outer->count;
    loop->stride = outer->stride;
    loop->body = std::move(op);
    return loop;
  }

  static void set_record(Op& op, const Node& unit, const std::vector<Run>& runs) {
    std::int64_t start = 0;
    std::uint64_t mask = 0;
    bool ascending = unit.low == 0 && unit.high <= line;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      cut(runs[i].length, [&](std::int64_t at, std::int64_t width) {
        op.own_moves.push_back({runs[i].offset + at, start + at, width});
      });
      start += runs[i].length;
      ascending = ascending && (i == 0 || runs[i].offset > runs[i - 1].offset);
      if (ascending) mask |= ones(runs[i].length) << runs[i].offset;
    }
    op.piece.moves = op.own_moves.data();
    op.piece.move_count = static_cast<std::int64_t>(op.own_moves.size());
    if (ascending) set_mask(op.piece, mask, unit.high);
  }

  /// `repeat`, if not null, repeats the whole list.
  std::unique_ptr<Op> list(const Node& node, const Node* repeat) const {
    auto op = std::make_unique<Op>();
    Piece& piece = op->piece;
    piece.count = static_cast<std::int64_t>(node.offsets.size());
    piece.offsets = node.offsets.data();
    if (node.lengths.empty())
      piece.width = node.block_length;
    else
      piece.lengths = node.lengths.data();
    finish_list(*op, node.size, repeat);
    return op;
  }

  std::unique_ptr<Op> list_of(const std::vector<Run>& runs, std::int64_t size, const Node* repeat) const {
    auto op = std::make_unique<Op>();
    for (const Run& run : runs) {
      op->own_offsets.push_back(run.offset);
      op->own_lengths.push_back(run.length);
    }
    Piece& piece = op->piece;
    piece.count = static_cast<std::int64_t>(runs.size());
    piece.offsets = op->own_offsets.data();
    if (std::all_of(runs.begin(), runs.end(), [&](const Run& run) { return run.length == runs[0].length; }))
      piece.width = runs[0].length;
    else
      piece.lengths = op->own_lengths.data();
    finish_list(*op, size, repeat);
    return op;
  }

  /// If all lengths are small multiples of one length, makes the list uniform, with blocks of that length, still in
  /// order. (In a random list, adjacent blocks have been merged; this undoes the merge.)
  static void make_uniform(Op& op, std::int64_t size) {
    Piece& piece = op.piece;
    std::int64_t unit = 0;
    for (std::int64_t i = 0; i < piece.count && unit != 1; ++i) unit = std::gcd(unit, piece.lengths[i]);
    if (unit > line || size / unit > piece.count + piece.count / 2) return;
    std::vector<std::int64_t> offsets;
    offsets.reserve(static_cast<std::size_t>(size / unit));
    for (std::int64_t i = 0; i < piece.count; ++i)
      for (std::int64_t at = 0; at < piece.lengths[i]; at += unit) offsets.push_back(piece.offsets[i] + at);
    op.own_offsets = std::move(offsets);
    piece.offsets = op.own_offsets.data();
    piece.count = static_cast<std::int64_t>(op.own_offsets.size());
    piece.lengths = nullptr;
    piece.width = unit;
  }

  void finish_list(Op& op, std::int64_t size, const Node* repeat) const {
    Piece& piece = op.piece;
    if (piece.lengths) make_uniform(op, size);
    piece.row_bytes = size;
    op.size = size;
    if (repeat) {
      piece.rows = repeat->count;
      piece.row_stride = repeat->stride;
      op.size = repeat->size;
    }
    if (piece.lengths) {
      std::int64_t start = 0;
      op.own_starts.reserve(static_cast<std::size_t>(piece.count));
      for (std::int64_t i = 0; i < piece.count; ++i) {
        op.own_starts.push_back(start);
        start += piece.lengths[i];
      }
      op.starts = op.own_starts.data();
      if (size <= sorted_mean * piece.count && size <= std::numeric_limits<std::int32_t>::max() && fits32(piece))
        sort_by_width(op);
    } else if (fits32(piece)) {
      op.own_offsets32.assign(piece.offsets, piece.offsets + piece.count);
      piece.offsets32 = op.own_offsets32.data();
    }
    choose_.list(op);
  }

  static void sort_by_width(Op& op) {
    Piece& piece = op.piece;
    std::vector<Run> runs;
    runs.reserve(static_cast<std::size_t>(piece.count));
    std::int64_t moves[7] = {};
    const auto each_move = [&](auto&& visit) {
      for (std::int64_t i = 0; i < piece.count; ++i)
        cut(piece.lengths[i], [&](std::int64_t at, std::int64_t width) {
          visit(std::countr_zero(static_cast<std::uint64_t>(width)),
                PlacedMove{static_cast<std::int32_t>(piece.offsets[i] + at),
                           static_cast<std::int32_t>(op.starts[i] + at)});
        });
    };
    for (std::int64_t i = 0; i < piece.count; ++i) runs.push_back({piece.offsets[i], piece.lengths[i]});
    op.any_order = disjoint(std::move(runs));
    each_move([&](int c, const PlacedMove&) { ++moves[c]; });
    std::int64_t total = 0;
    std::int64_t next[7];
    for (int c = 0; c < 7; ++c) {
      next[c] = total;
      total += moves[c];
      piece.class_ends[c] = static_cast<std::int32_t>(total);
    }
    op.own_sorted.resize(static_cast<std::size_t>(total));
    each_move([&](int c, const PlacedMove& move) { op.own_sorted[static_cast<std::size_t>(next[c]++)] = move; });
    piece.sorted = op.own_sorted.data();
  }

  static bool fits32(const Piece& piece) {
    for (std::int64_t i = 0; i < piece.count; ++i) {
      const std::int64_t end = piece.offsets[i] + (piece.lengths ? piece.lengths[i] : 0);
      if (piece.offsets[i] != static_cast<std::int32_t>(piece.offsets[i]) || end != static_cast<std::int32_t>(end))
        return false;
    }
    return true;
  }

  std::unique_ptr<Op> sequence(const Node& node) const {
    auto op = std::make_unique<Op>();
    op->kind = Op::Kind::sequence;
    op->size = node.size;
    op->parts.reserve(node.items.size());
    std::int64_t start = 0;
    for (const Item& item : node.items) {
      op->parts.push_back({item.offset, start, compile(*item.node)});
      start += item.node->size;
    }
    return op;
  }

  Choose choose_;
};

}  // namespace

std::unique_ptr<Op> compile(const Layout& layout, const PackerOptions& options) {
  if (layout.root()) return Compiler(options).compile(*layout.root());
  auto op = std::make_unique<Op>();
  op->piece.rows = 0;
  Choose(options).strided(*op);
  return op;
}

}  // namespace bestride::inline kernels
