// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

namespace bestride::inline interpose {
namespace {

TEST(BufferPool, ReusesAndAligns) {
  BufferPool pool(1 << 20);
  void* first = pool.take(1000);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0u);
  pool.give_back(first, 1000);
  EXPECT_EQ(pool.idle_bytes(), 1024);
  EXPECT_EQ(pool.take(513), first) << "the same class";
  EXPECT_EQ(pool.idle_bytes(), 0);
  pool.give_back(first, 513);
}

TEST(BufferPool, HasRoomForEverySize) {
  BufferPool pool(0);
  for (std::int64_t bytes = 1; bytes < 70000; bytes = bytes * 5 / 4 + 1) {
    BufferLease lease(pool, bytes);
    ASSERT_TRUE(lease);
    std::memset(lease.data(), 0xA5, static_cast<std::size_t>(bytes));
  }
}

TEST(BufferPool, KeepsAtMostItsLimit) {
  BufferPool pool(4096);
  std::vector<BufferLease> leases;
  for (int i = 0; i < 10; ++i) leases.emplace_back(pool, 1024);
  leases.clear();
  EXPECT_EQ(pool.idle_bytes(), 4096);
}

TEST(BufferPool, RejectsImpossibleSizes) {
  BufferPool pool(0);
  EXPECT_EQ(pool.take(std::int64_t{1} << 60), nullptr);
}

TEST(BufferPool, LeaseIsMovableAndReleasedOnce) {
  BufferPool pool(1 << 20);
  BufferLease a(pool, 300);
  BufferLease b(std::move(a));
  EXPECT_FALSE(a);
  ASSERT_TRUE(b);
  a = std::move(b);
  a.release();
  a.release();
  EXPECT_EQ(pool.idle_bytes(), 512);
}

TEST(BufferPool, BuffersMoveBetweenThreads) {
  BufferPool pool(1 << 20);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&pool] {
      for (int i = 0; i < 20000; ++i) {
        BufferLease lease(pool, 100 + i % 2000);
        ASSERT_TRUE(lease);
        std::memset(lease.data(), i, 100);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(pool.idle_bytes(), 1 << 20);
}

}  // namespace
}  // namespace bestride::inline interpose
