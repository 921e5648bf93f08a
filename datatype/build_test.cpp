// SPDX-License-Identifier: Apache-2.0
// Tests properties of the layout algebra: random trees are compared with their expanded list of runs.
#include "datatype/build.hpp"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "datatype/node.hpp"

namespace bestride::inline datatype {
namespace {

using Runs = std::vector<std::pair<std::int64_t, std::int64_t>>;  // offset, length; adjacent runs merged

void add(Runs& runs, std::int64_t offset, std::int64_t length) {
  if (length <= 0) return;
  if (!runs.empty() && runs.back().first + runs.back().second == offset)
    runs.back().second += length;
  else
    runs.emplace_back(offset, length);
}

Runs expand(const Placed& placed) {
  Runs runs;
  if (placed.node)
    for_each_block(*placed.node, placed.offset,
                   [&](std::int64_t offset, std::int64_t length) { return add(runs, offset, length), true; });
  return runs;
}

Runs moved(const Runs& runs, std::int64_t shift) {
  Runs out;
  for (auto [offset, length] : runs) out.emplace_back(offset + shift, length);
  return out;
}

Built from_runs(const Runs& runs) {
  std::vector<std::int64_t> offsets, lengths;
  for (auto [offset, length] : runs) offsets.push_back(offset), lengths.push_back(length);
  return make_blocks(offsets, lengths);
}

struct Case {
  Placed placed;
  Runs runs;
};

/// A random tree, built by the algebra and, independently, as a list of runs.
Case random_case(std::mt19937& rng, int depth) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
  if (depth == 0 || pick(0, 5) == 0) {
    const std::int64_t offset = pick(-20, 20), length = pick(0, 12);
    Runs runs;
    add(runs, offset, length);
    return {*make_block(offset, length), runs};
  }
  if (pick(0, 1) == 0) {
    const Case body = random_case(rng, depth - 1);
    const std::int64_t count = pick(0, 5),
                       stride = pick(0, 3) ? pick(-40, 40) : (body.placed.node ? body.placed.node->high : 3);
    Case result{*make_repeat(body.placed, count, stride), {}};
    for (std::int64_t i = 0; i < count; ++i)
      for (auto [offset, length] : body.runs) add(result.runs, offset + i * stride, length);
    return result;
  }
  std::vector<Placed> parts;
  Case result;
  const int n = pick(0, 4);
  const Case repeated = random_case(rng, depth - 1);
  for (int i = 0; i < n; ++i) {
    const Case part = pick(0, 1) ? random_case(rng, depth - 1) : repeated;
    const std::int64_t shift = pick(0, 2) ? pick(-60, 60) : i * 16;
    parts.push_back({part.placed.offset + shift, part.placed.node});
    for (auto [offset, length] : moved(part.runs, shift)) add(result.runs, offset, length);
  }
  result.placed = *make_sequence(parts);
  return result;
}

TEST(Build, RandomTreesKeepTheByteOrder) {
  std::mt19937 rng(20260101);
  for (int i = 0; i < 30000; ++i) {
    const Case one = random_case(rng, 4);
    ASSERT_EQ(expand(one.placed), one.runs) << intern(one.placed)->text();
    std::int64_t size = 0, low = INT64_MAX, high = INT64_MIN;
    for (auto [offset, length] : one.runs)
      size += length, low = std::min(low, offset), high = std::max(high, offset + length);
    const LayoutPtr layout = intern(one.placed);
    ASSERT_EQ(layout->size(), size);
    if (size) {
      ASSERT_EQ(layout->low(), low);
      ASSERT_EQ(layout->high(), high);
      ASSERT_EQ(layout->offset(), one.runs.front().first);
    }
  }
}

TEST(Build, EqualTypeMapsShareALayout) {
  std::mt19937 rng(7);
  for (int i = 0; i < 30000; ++i) {
    const Case one = random_case(rng, 4);
    const LayoutPtr layout = intern(one.placed);
    const LayoutPtr list = intern(*from_runs(one.runs));
    ASSERT_EQ(layout, list) << layout->text() << "   and   " << list->text();
    // and the structure derived from the list of runs describes the same bytes
    ASSERT_EQ(expand(*from_runs(one.runs)), one.runs);
  }
}

TEST(Build, DifferentTypeMapsHaveDifferentLayouts) {
  std::mt19937 rng(11);
  for (int i = 0; i < 5000; ++i) {
    const Case one = random_case(rng, 3), other = random_case(rng, 3);
    if (one.runs != other.runs) {
      ASSERT_NE(intern(one.placed), intern(other.placed));
    }
  }
}

TEST(Build, LayoutsAreFreedWithTheLastReference) {
  const std::size_t before = interned_layouts();
  {
    const LayoutPtr layout = intern(*make_repeat(*make_block(0, 3), 1000, 7));
    EXPECT_EQ(interned_layouts(), before + 1);
    EXPECT_EQ(intern(*make_repeat(*make_block(0, 3), 1000, 7)), layout);
  }
  EXPECT_EQ(interned_layouts(), before);
}

TEST(Build, RegularBlockListsBecomeLoops) {
  // A 3-D face as 12 x 10 blocks, with two more blocks at the end.
  std::vector<std::int64_t> offsets, lengths;
  for (int z = 0; z < 12; ++z)
    for (int y = 0; y < 10; ++y) offsets.push_back(z * 8192 + y * 256), lengths.push_back(24);
  EXPECT_EQ(intern(*make_blocks(offsets, lengths))->text(), "12 x 8192 | 10 x 256 | 24 B");
  offsets.push_back(12 * 8192), lengths.push_back(24);
  EXPECT_EQ(intern(*make_blocks(offsets, lengths))->text(), "{ 12 x 8192 | 10 x 256 | 24 B, +98304 24 B }");
  // An array of records; the last field of each touches the first field of the next.
  const Placed record = *make_sequence(std::vector<Placed>{*make_block(0, 18), *make_block(20, 20)});
  EXPECT_EQ(intern(*make_repeat(record, 5, 40))->text(), "{ 18 B, +20 4 x 40 | 38 B, +180 20 B }");
}

TEST(Build, LoopsFoldAndKeepTheirOffset) {
  const Placed row = *make_repeat(*make_block(64, 8), 4, 16);
  EXPECT_EQ(intern(*make_repeat(row, 3, 64))->text(), "+64 | 12 x 16 | 8 B");
  EXPECT_EQ(intern(*make_repeat(row, 1, 5))->text(), "+64 | 4 x 16 | 8 B");
  EXPECT_EQ(intern(*make_repeat(*make_block(5, 8), 6, 8))->text(), "+5 | 48 B");
  EXPECT_EQ(intern(*make_repeat(row, 0, 64))->text(), "empty");
}

TEST(Build, RejectsOverflow) {
  EXPECT_FALSE(make_repeat(*make_block(0, 8), std::int64_t{1} << 40, std::int64_t{1} << 40));
  EXPECT_FALSE(make_block(std::int64_t{1} << 62, 8));
  EXPECT_FALSE(make_repeat(*make_repeat(*make_block(0, 1), std::int64_t{1} << 40, 2), std::int64_t{1} << 40, 0));
  EXPECT_TRUE(make_repeat(*make_block(0, 8), 300000000, 3000000000));
}

}  // namespace
}  // namespace bestride::inline datatype
