// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/request_table.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

namespace bestride::inline interpose {
namespace {

struct Entry {
  int request = 0;
  Entry* chain = nullptr;
  int index = 0;
};
using Table = RequestTable<int, Entry>;

TEST(RequestTable, IsEmptyAtFirst) {
  Table table;
  EXPECT_TRUE(table.empty());
  Entry entry{7};
  EXPECT_TRUE(table.insert(&entry));
  EXPECT_FALSE(table.empty());
  EXPECT_EQ(table.extract(7), &entry);
  EXPECT_FALSE(table.empty()) << "an extracted entry is still counted";
  table.count_removed();
  EXPECT_TRUE(table.empty());
}

TEST(RequestTable, RejectsASecondEntryForAHandle) {
  Table table;
  Entry first{7}, second{7};
  EXPECT_TRUE(table.insert(&first));
  EXPECT_FALSE(table.insert(&second));
  EXPECT_EQ(table.extract(7), &first);
  EXPECT_TRUE(table.insert(&second)) << "the handle is free again once its entry is taken out";
}

TEST(RequestTable, ExtractAllKeepsTheOrderAndTheIndices) {
  Table table;
  Entry a{10}, b{20}, c{30};
  table.insert(&a), table.insert(&b), table.insert(&c);
  const int requests[] = {30, 99, 10, 30, 20};
  Entry* list = table.extract_all(requests, 5);
  ASSERT_EQ(list, &c);
  EXPECT_EQ(c.index, 0);
  ASSERT_EQ(c.chain, &a);
  EXPECT_EQ(a.index, 2);
  ASSERT_EQ(a.chain, &b);
  EXPECT_EQ(b.index, 4);
  EXPECT_EQ(b.chain, nullptr);
  EXPECT_EQ(table.extract(10), nullptr);
}

TEST(RequestTable, ExtractAllStopsWhenTheTableIsEmpty) {
  Table table;
  Entry only{10};
  table.insert(&only);
  // The rest of the array is not read: `count` may be larger than the array.
  const int requests[] = {99, 10};
  EXPECT_EQ(table.extract_all(requests, 1 << 30), &only);
  EXPECT_EQ(only.index, 1);
  EXPECT_EQ(only.chain, nullptr);
}

TEST(RequestTable, WithKeepsOrRemoves) {
  Table table;
  Entry entry{7};
  table.insert(&entry);
  EXPECT_TRUE(table.with(7, [](Entry*) { return false; }));
  EXPECT_TRUE(table.with(7, [](Entry*) { return true; }));
  EXPECT_FALSE(table.with(7, [](Entry*) { return true; }));
}

TEST(RequestTable, GrowsAndFindsAll) {
  Table table;
  std::vector<Entry> entries(20000);
  for (int i = 0; i < 20000; ++i) entries[static_cast<std::size_t>(i)].request = i * 16 + 3;
  for (Entry& entry : entries) ASSERT_TRUE(table.insert(&entry));
  EXPECT_EQ(table.size(), 20000u);
  for (Entry& entry : entries) ASSERT_EQ(table.extract(entry.request), &entry);
}

TEST(RequestTable, ThreadsFindTheirOwnEntries) {
  Table table;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&table, t] {
      for (int i = 0; i < 20000; ++i) {
        Entry entry{t * 1000 + i % 500};
        ASSERT_TRUE(table.insert(&entry));
        ASSERT_EQ(table.extract(entry.request), &entry);
        table.put_back(&entry);
        ASSERT_EQ(table.extract(entry.request), &entry);
        table.count_removed();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(table.empty());
}

}  // namespace
}  // namespace bestride::inline interpose
