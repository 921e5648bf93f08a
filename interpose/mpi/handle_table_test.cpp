// SPDX-License-Identifier: Apache-2.0
#include "interpose/mpi/handle_table.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>
#include <vector>

namespace bestride::inline interpose {
namespace {

TEST(HandleTable, FindsEntriesUntilRemoved) {
  HandleTable<int, int> table;
  int a = 1, b = 2;
  int* replaced = nullptr;
  EXPECT_EQ(table.find(5), nullptr);
  EXPECT_TRUE(table.insert(5, &a, &replaced));
  EXPECT_EQ(replaced, nullptr);
  EXPECT_EQ(table.find(5), &a);
  EXPECT_TRUE(table.insert(5, &b, &replaced));
  EXPECT_EQ(replaced, &a);
  EXPECT_EQ(table.remove(5), &b);
  EXPECT_EQ(table.remove(5), nullptr);
  EXPECT_EQ(table.find(5), nullptr);
}

TEST(HandleTable, RejectsTheNullHandle) {
  HandleTable<int, int> table;
  int a = 1;
  int* replaced = nullptr;
  EXPECT_FALSE(table.insert(0, &a, &replaced));
}

TEST(HandleTable, MatchesAMapUnderChurn) {
  HandleTable<int, int> table;
  std::map<int, int*> expected;
  std::vector<int> values(5000);
  std::mt19937 random(7);
  for (int step = 0; step < 200000; ++step) {
    const int handle = static_cast<int>(random() % 3000) * 4 + 0x4c000001;
    int* value = &values[random() % values.size()];
    int* replaced = nullptr;
    switch (random() % 3) {
      case 0:
        ASSERT_TRUE(table.insert(handle, value, &replaced));
        ASSERT_EQ(replaced, expected.count(handle) ? expected[handle] : nullptr);
        expected[handle] = value;
        break;
      case 1:
        ASSERT_EQ(table.remove(handle), expected.count(handle) ? expected[handle] : nullptr);
        expected.erase(handle);
        break;
      default: ASSERT_EQ(table.find(handle), expected.count(handle) ? expected[handle] : nullptr);
    }
    ASSERT_EQ(table.size(), expected.size());
  }
}

TEST(HandleTable, ReusedHandlesDoNotFillIt) {
  HandleTable<void*, int> table;
  int value = 1;
  int* replaced = nullptr;
  for (std::uintptr_t i = 1; i < 1000000; ++i) {
    auto* handle = reinterpret_cast<void*>((i % 20 + 1) * 64);
    ASSERT_TRUE(table.insert(handle, &value, &replaced));
    ASSERT_EQ(table.remove(handle), &value);
  }
  EXPECT_EQ(table.size(), 0u);
}

TEST(HandleTable, ReadersFindEntriesDuringChanges) {
  HandleTable<int, int> table;
  int stays = 1, comes_and_goes = 2;
  int* replaced = nullptr;
  table.insert(77, &stays, &replaced);
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t)
    readers.emplace_back([&] {
      while (!stop) ASSERT_EQ(table.find(77), &stays);
    });
  for (int i = 0; i < 20000; ++i) {
    int* ignored = nullptr;
    table.insert(1000 + i, &comes_and_goes, &ignored);
    if (i % 3) table.remove(1000 + i);
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
}

TEST(HandleTable, KeepsEntriesIfAllocationFails) {
  HandleTable<int, int> table;
  int value = 1;
  int* replaced = nullptr;
  injected_failures = 1u << static_cast<int>(FailPoint::table);
  int held = 0;
  while (held < 1000 && table.insert(held + 1, &value, &replaced)) ++held;
  EXPECT_GE(held, 16);
  EXPECT_LT(held, 1000);
  for (int i = 1; i <= held; ++i) EXPECT_EQ(table.find(i), &value);
  EXPECT_EQ(table.find(held + 1), nullptr);
  injected_failures = 0;
  EXPECT_TRUE(table.insert(held + 1, &value, &replaced));
  for (int i = 1; i <= held + 1; ++i) EXPECT_EQ(table.find(i), &value);
}

}  // namespace
}  // namespace bestride::inline interpose
