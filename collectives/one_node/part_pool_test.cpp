// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/part_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace bestride::inline collectives {
namespace {

constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();

bool overlap(const Part& one, const Part& other) {
  return one.data < other.data + other.bytes && other.data < one.data + one.bytes;
}

TEST(PartPool, PartsInUseDoNotOverlapAndUnusedMemoryIsZero) {
  std::mt19937_64 random(1);
  PartPool pool;
  std::vector<Part> parts;
  for (int turn = 0; turn < 3000; ++turn) {
    if (!parts.empty() && random() % 2 == 0) {
      const std::size_t pick = random() % parts.size();
      pool.put_back(parts[pick]);
      parts[pick] = parts.back();
      parts.pop_back();
      continue;
    }
    const auto bytes = static_cast<std::int64_t>(1 + random() % 300'000);
    const Part part = pool.take(bytes, PartPool::From::any, unlimited);
    ASSERT_TRUE(part.data);
    EXPECT_GE(part.bytes, bytes);
    EXPECT_EQ(part.offset % 4096, 0);
    for (const Part& other : parts) ASSERT_FALSE(overlap(part, other));
    EXPECT_TRUE(std::all_of(part.data + part.written, part.data + part.bytes,
                            [](std::byte byte) { return byte == std::byte{0}; }));
    std::fill_n(part.data, part.bytes, std::byte{1});
    parts.push_back(part);
  }
}

/// A communicator that is made and freed again and again takes the same memory.
TEST(PartPool, MemoryIsUsedAgain) {
  PartPool pool;
  const Part first = pool.take(1 << 20, PartPool::From::any, unlimited);
  const std::int64_t bytes = pool.bytes();
  EXPECT_EQ(first.written, 0);
  pool.put_back(first);
  for (int i = 0; i < 100; ++i) {
    const Part part = pool.take(1 << 20, PartPool::From::used, 0);
    EXPECT_EQ(part.data, first.data);
    EXPECT_EQ(part.written, part.bytes);
    pool.put_back(part);
  }
  EXPECT_EQ(pool.bytes(), bytes);
}

TEST(PartPool, AdjacentPartsJoin) {
  PartPool pool;
  std::vector<Part> parts;
  for (int i = 0; i < 8; ++i) parts.push_back(pool.take(32 * 1024, PartPool::From::any, 256 * 1024));
  for (const Part& part : parts) ASSERT_TRUE(part.data);
  std::shuffle(parts.begin(), parts.end(), std::mt19937_64(2));
  for (const Part& part : parts) pool.put_back(part);
  EXPECT_TRUE(pool.take(256 * 1024, PartPool::From::used, 0).data);
}

TEST(PartPool, LimitAndUnusedMemoryAreKept) {
  PartPool pool;
  EXPECT_FALSE(pool.take(4096, PartPool::From::used, unlimited).data);
  EXPECT_FALSE(pool.take(8192, PartPool::From::any, 4096).data);
  const Part part = pool.take(8192, PartPool::From::any, 8192);
  ASSERT_TRUE(part.data);
  EXPECT_FALSE(pool.take(4096, PartPool::From::any, 8192).data);
  pool.put_back(part);
  EXPECT_TRUE(pool.take(4096, PartPool::From::any, 8192).data);
  EXPECT_EQ(pool.bytes(), 8192);
}

/// Parts without a limit make windows with room for others, which keep to their own limit.
TEST(PartPool, LimitHoldsInWindowsThatOthersHaveMade) {
  PartPool pool;
  constexpr std::int64_t limit = 4 << 20;
  std::int64_t given = 0;
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(pool.take(60 * 1024, PartPool::From::any, unlimited).data);
    if (pool.take(1 << 20, PartPool::From::any, limit).data) given += 1 << 20;
  }
  EXPECT_GT(given, 0);
  EXPECT_LE(given, limit);
}

TEST(SegmentMap, OpensEachWindowOnce) {
  PartPool pool;
  const Part one = pool.take(4096, PartPool::From::any, unlimited);
  const Part other = pool.take(4096, PartPool::From::any, unlimited);
  ASSERT_EQ(one.key.magic, other.key.magic);
  SegmentMap map;
  std::byte* const window = map.find(one.key);
  ASSERT_TRUE(window);
  EXPECT_EQ(map.find(other.key), window);
  other.data[7] = std::byte{9};
  EXPECT_EQ(window[other.offset + 7], std::byte{9});
  WindowKey wrong = one.key;
  wrong.magic ^= 1;
  EXPECT_FALSE(map.find(wrong));
}

}  // namespace
}  // namespace bestride::inline collectives
