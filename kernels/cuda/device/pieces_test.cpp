// SPDX-License-Identifier: Apache-2.0
// Pieces without a device: they contain the same bytes in the same order as the type map, and the arithmetic is exact
// at its limits.
#include "kernels/cuda/device/pieces.hpp"

#include <gtest/gtest.h>

#include <map>

#include "kernels/cuda/device/overlap.hpp"
#include "kernels/cuda/kernels/index.hpp"
#include "kernels/cuda/launch/encode.hpp"
#include "kernels/test_trees.hpp"

namespace bestride::cuda {
namespace {

using bestride::test::Trees;

/// Map of packed position -> user offset for every byte, according to the pieces.
std::map<std::int64_t, std::int64_t> bytes_of(const Pieces& pieces) {
  std::map<std::int64_t, std::int64_t> all;
  for (const Piece& piece : pieces.pieces)
    for (std::int64_t n = 0; n < piece.bytes(); ++n) {
      std::int64_t within = n % piece.block, rest = n / piece.block;
      std::int64_t user = piece.user, packed = piece.packed;
      for (const PieceLoop& loop : piece.loops) {
        user += rest % loop.count * loop.user_stride;
        packed += rest % loop.count * loop.packed_stride;
        rest /= loop.count;
      }
      packed += within;
      if (piece.list >= 0) {
        const BlockList& list = pieces.lists[static_cast<std::size_t>(piece.list)];
        std::size_t entry = 0;
        while (list.starts[entry + 1] <= within) ++entry;
        user += list.offsets[entry];
        within -= list.starts[entry];
      }
      EXPECT_TRUE(all.emplace(packed, user + within).second) << "packed byte occurs twice";
      EXPECT_EQ(bytes_before(piece, packed - piece.packed), n);
    }
  return all;
}

void expect_type_map(const LayoutPtr& layout) {
  SCOPED_TRACE(layout->text());
  const Result<Pieces> pieces = pieces_of(*layout);
  ASSERT_TRUE(pieces) << pieces.error().text;
  std::map<std::int64_t, std::int64_t> expected;
  std::map<std::int64_t, int> named;
  std::int64_t position = 0;
  for_each_block(*layout->root(), layout->offset(), [&](std::int64_t offset, std::int64_t length) {
    for (std::int64_t i = 0; i < length; ++i) {
      expected[position++] = offset + i;
      ++named[offset + i];
    }
    return true;
  });
  EXPECT_EQ(bytes_of(*pieces), expected);
  EXPECT_EQ(pieces->overlaps, named.size() != expected.size());
  for (const Piece& piece : pieces->pieces) EXPECT_LE(piece.loops.size(), static_cast<std::size_t>(max_loops));
}

TEST(Pieces, MatchTheTypeMap) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Trees draw(seed);
    for (int i = 0; i < 40; ++i) expect_type_map(draw.draw(1500));
  }
}

TEST(Pieces, NestedDeeperThanTheKernelsSupport) {
  Placed nest = *make_block(0, 3);
  std::int64_t stride = 7;
  for (int depth = 0; depth < max_loops + 3; ++depth, stride = stride * 3 + 1) nest = *make_repeat(nest, 2, stride);
  expect_type_map(intern(nest));
}

TEST(Pieces, LongPiecesAreSplit) {
  const std::int64_t gib = std::int64_t{1} << 30;
  const auto check = [&](const Built& built, std::size_t at_least) {
    const LayoutPtr layout = intern(*built);
    const Result<Pieces> pieces = pieces_of(*layout);
    ASSERT_TRUE(pieces);
    EXPECT_GE(pieces->pieces.size(), at_least);
    std::int64_t total = 0;
    for (const Piece& piece : pieces->pieces) {
      EXPECT_LT(piece.bytes(), piece_limit);
      EXPECT_EQ(piece.packed, total);
      total += piece.bytes();
    }
    EXPECT_EQ(total, layout->size());
  };
  check(make_block(0, 9 * gib), 5);
  check(make_repeat(*make_block(0, gib), 7, 2 * gib), 7);
  check(make_repeat(*make_repeat(*make_block(0, 8), 100000, 16), 10000, 16 * 100000 + 64), 4);
  check(make_blocks(std::vector<std::int64_t>{0, 5 * gib, 20 * gib}, std::vector<std::int64_t>{4 * gib, 3, 6 * gib}),
        6);
}

TEST(Overlap, KnowsTransposesAndInterleavedFields) {
  const Built column = make_repeat(*make_block(0, 8), 1000, 8 * 3000);
  EXPECT_FALSE(may_overlap(*intern(*make_repeat(*column, 3000, 8))));
  EXPECT_TRUE(may_overlap(*intern(*make_repeat(*make_block(0, 8), 10, 7))));
  // Two interleaved vectors: only the check of every byte can decide.
  const Built a = make_repeat(*make_block(0, 8), 100, 24), b = make_repeat(*make_block(8, 8), 100, 24);
  EXPECT_FALSE(may_overlap(*intern(*make_sequence(std::vector<Placed>{*a, *b}))));
  const Built c = make_repeat(*make_block(7, 8), 90, 24);
  EXPECT_TRUE(may_overlap(*intern(*make_sequence(std::vector<Placed>{*a, *c}))));
}

TEST(Index, DivisionsAreExact) {
  std::vector<Number> interesting{1,
                                  2,
                                  3,
                                  5,
                                  7,
                                  10,
                                  31,
                                  32,
                                  33,
                                  1000,
                                  65535,
                                  65536,
                                  65537,
                                  999999937,
                                  (1u << 30) - 1,
                                  1u << 30,
                                  (1u << 30) + 1,
                                  0x7FFFFFFF};
  for (const Number divisor : interesting)
    for (const Number around : interesting)
      for (Number n = around > 3 ? around - 3 : 0; n < around + 3 && n < 0x80000000u; ++n)
        for (const Number value :
             {n, static_cast<Number>(std::uint64_t{n} * divisor & 0x7FFFFFFF), 0x7FFFFFFFu - n % 1000})
          ASSERT_EQ(quotient(value, divisor_of(divisor)), value / divisor) << value << " / " << divisor;
}

}  // namespace
}  // namespace bestride::cuda
