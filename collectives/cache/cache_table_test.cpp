// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/cache_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

CacheTable::Call call_of(CacheTable& table, std::vector<std::int64_t> blocks) {
  std::copy(blocks.begin(), blocks.end(), table.blocks().begin());
  return table.begin();
}
CacheTable::Decision miss(CacheTable& table, std::vector<std::int64_t> blocks) {
  return table.decide(call_of(table, std::move(blocks)), {});
}

constexpr CacheLimits kilobyte{1024, 1, true};

TEST(CacheTable, KeepsTheMostRecentlyUsedWithinTheBudget) {
  CacheTable table(kilobyte, 1);
  std::map<std::int64_t, std::int64_t> at;  // by size
  for (const std::int64_t bytes : {256, 320, 384}) at[bytes] = miss(table, {bytes}).store->offset;
  EXPECT_EQ(at[256], 0);
  EXPECT_EQ(at[320], 256);
  EXPECT_EQ(at[384], 576);
  auto call = call_of(table, {256});
  ASSERT_EQ(call.candidates, 1);
  EXPECT_EQ(table.decide(call, {1, 1, 0, 0}).hit, 0);
  // 320 is now the oldest, so it is evicted.
  EXPECT_EQ(miss(table, {192}).store->offset, 256);
  EXPECT_EQ(call_of(table, {320}).candidates, 0);
}

TEST(CacheTable, IgnoresTooShortAndTooLongEntries) {
  CacheTable table({1024, 100, true}, 2);
  EXPECT_FALSE(call_of(table, {49, 50}).active);
  EXPECT_TRUE(call_of(table, {50, 50}).active);
  EXPECT_TRUE(call_of(table, {1024, 0}).active);
  EXPECT_FALSE(call_of(table, {1024, 1}).active);
  CacheTable none({0, 0, true}, 2);
  EXPECT_FALSE(call_of(none, {0, 0}).active);
  EXPECT_FALSE(call_of(none, {1, 1}).active);
}

TEST(CacheTable, DistinguishesShapesOfEqualSum) {
  CacheTable table(kilobyte, 2);
  miss(table, {10, 20});
  EXPECT_EQ(call_of(table, {20, 10}).candidates, 0);
  EXPECT_EQ(call_of(table, {10, 20}).candidates, 1);
}

TEST(CacheTable, DeltaBaseIsTheAgreedEntryElseTheNewest) {
  CacheTable table({1 << 20, 1, true}, 1);
  std::vector<std::int64_t> at;
  for (int i = 0; i < 3; ++i) at.push_back(miss(table, {640}).store->offset);
  // Candidates: 0 is the newest, at[2].
  auto call = call_of(table, {640});
  EXPECT_EQ(table.decide(call, {0, 0b111, 0b100, 0b101}).base, at[0]);
  // Apart from the new one, the base is now the most recently used; then at[2].
  call = call_of(table, {640});
  ASSERT_EQ(call.candidates, 4);
  EXPECT_EQ(table.decide(call, {0, 0b1111, 0, 0b1100}).base, at[2]);
  // No member knows the content, or not all members have the entry that one knows.
  EXPECT_EQ(table.decide(call_of(table, {640}), {0, 0b11111, 0b11111, 0}).base, -1);
  EXPECT_EQ(table.decide(call_of(table, {640}), {0, 0b000001, 0b100010, 0b100010}).base, -1);
  CacheTable without({1 << 20, 1, false}, 1);
  miss(without, {640});
  EXPECT_EQ(without.decide(call_of(without, {640}), {0, 1, 1, 1}).base, -1);
}

TEST(CacheTable, EvictsSupersededEntriesFirstAndPinsTheBase) {
  CacheTable table({3 * 256, 1, true}, 1);
  const std::int64_t first = miss(table, {256}).store->offset;
  const std::int64_t second = miss(table, {256}).store->offset;
  auto decision = table.decide(call_of(table, {256}), {0, 0b11, 0b01, 0b01});  // differs from the second
  EXPECT_EQ(decision.base, second);
  decision = table.decide(call_of(table, {256}), {});
  EXPECT_EQ(decision.store->offset, second);  // although the first is older
  CacheTable narrow({256 + 128, 1, true}, 1);
  miss(narrow, {256});
  decision = narrow.decide(call_of(narrow, {256}), {0, 1, 1, 1});
  EXPECT_EQ(decision.base, 0);
  EXPECT_EQ(decision.store, nullptr);  // does not fit in addition to the base
  EXPECT_EQ(call_of(narrow, {256}).candidates, 1);
  EXPECT_EQ(first, 0);
}

TEST(CacheTable, ShapeWithoutHitsBacksOff) {
  CacheTable table(kilobyte, 1);
  const std::int64_t patience = table.patience(256);
  EXPECT_EQ(patience, 4 + 2 * 4);
  std::int64_t pause = patience;
  for (int level = 0; level < 9; ++level) {
    for (std::int64_t i = 0; i < patience; ++i) {
      auto call = call_of(table, {256});
      ASSERT_TRUE(call.active) << level;
      table.decide(call, {});
    }
    for (std::int64_t i = 0; i < pause; ++i) ASSERT_FALSE(call_of(table, {256}).active) << level << ' ' << i;
    if (level < 6) pause *= 2;
  }
  EXPECT_TRUE(call_of(table, {128}).active);  // another shape
  table.decide(call_of(table, {256}), {1, 1, 0, 0});
  for (std::int64_t i = 0; i < patience; ++i) table.decide(call_of(table, {256}), {});
  for (std::int64_t i = 0; i < patience; ++i) ASSERT_FALSE(call_of(table, {256}).active);
  EXPECT_TRUE(call_of(table, {256}).active);
}

TEST(CacheTable, KeepsSixtyFourCandidatesPerShape) {
  CacheTable table({1 << 20, 1, true}, 1);
  for (int i = 0; i < 100; ++i) EXPECT_NE(miss(table, {100}).store, nullptr);
  auto call = call_of(table, {100});
  EXPECT_EQ(call.candidates, 64);
  EXPECT_EQ(table.decide(call, {std::uint64_t{1} << 63, ~std::uint64_t{0}, 0, 0}).hit,
            36 * 128);  // the oldest of them, the 37th
}

/// No two known entries overlap, for any sequence of calls and evictions, and all are within the budget.
TEST(CacheTable, EntriesNeverOverlap) {
  std::mt19937_64 random(12);
  for (int round = 0; round < test::repetitions(50); ++round) {
    const std::int64_t budget = 64 * static_cast<std::int64_t>(1 + random() % 100);
    CacheTable table({budget, 1, true}, 1);
    const int sizes = static_cast<int>(1 + random() % 150);  // more than the number of shapes
    std::uint64_t finds = 0;
    for (int i = 0; i < 2000; ++i) {
      const std::int64_t bytes = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(sizes)) * 37;
      auto call = call_of(table, {bytes});
      if (!call.active) continue;
      const bool base_there = call.candidates > 0;
      const std::uint64_t bits = random();
      CacheTable::Agreed agreed;
      if (random() % 3 == 0) agreed.equal = bits & random();
      if (random() % 2 == 0) agreed.held = agreed.resembled = agreed.chosen = bits;
      const auto decision = table.decide(call, agreed);
      finds += decision.hit >= 0 || decision.base >= 0;
      if (!base_there) {
        ASSERT_EQ(decision.hit, -1);
        ASSERT_EQ(decision.base, -1);
      }
      if (!decision.store) continue;
      const CacheEntry& stored = *decision.store;
      ASSERT_GE(stored.bytes, bytes);
      ASSERT_LE(stored.offset + stored.bytes, budget);
      if (decision.base >= 0) {
        ASSERT_TRUE(stored.offset + stored.bytes <= decision.base || decision.base + stored.bytes <= stored.offset);
      }
      std::map<std::int64_t, std::int64_t> ends;
      table.each_entry(
          [&](const CacheEntry& entry) { ASSERT_TRUE(ends.emplace(entry.offset, entry.offset + entry.bytes).second); });
      std::int64_t before = 0;
      for (const auto& [offset, end] : ends) {
        ASSERT_GE(offset, before);
        before = end;
      }
      ASSERT_EQ(ends.count(stored.offset), 1u);
    }
    EXPECT_TRUE(finds > 0 || budget <= 64 * 50);
  }
}

}  // namespace
}  // namespace bestride::inline collectives
