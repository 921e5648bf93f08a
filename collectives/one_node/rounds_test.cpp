// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/rounds.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "collectives/one_node/vote.hpp"
#include "collectives/testing/simulated_node.hpp"

namespace bestride::inline collectives {
namespace {

TEST(Rounds, ShapeFitsTheLimit) {
  for (const int ranks : {1, 2, 3, 8, 64, 256})
    for (const std::int64_t limit : {std::int64_t{1}, std::int64_t{1} << 20, std::int64_t{64} << 20}) {
      const RoundsShape shape = RoundsShape::within(ranks, limit);
      EXPECT_EQ(shape.slot_bytes % 4096, 0);
      EXPECT_GE(shape.slot_bytes, 4096);
      EXPECT_TRUE(shape.slot_bytes == 4096 || static_cast<std::int64_t>(shape.bytes()) <= limit);
    }
}

/// A rank may be ahead of the others by as many slots as its ring holds, and by as many rounds as it has entries.
void expect_ahead(std::int64_t slot_bytes, std::int64_t bytes, int rounds_ahead) {
  SimulatedNode node(2, slot_bytes, 1);
  Rounds& writer = node.at(0);
  const auto fills = [&]() -> Task {
    writer.open();
    const Rounds::Number round = writer.begin(RoundKind::bcast);
    co_await writer.taken(round, bytes);
    writer.publish(round, bytes);
    writer.close();
  };
  for (int slot = 0; slot < rounds_ahead; ++slot) EXPECT_TRUE(fills().step()) << slot;
  for (int again = 0; again < 100; ++again) {
    Task one_more = fills();
    EXPECT_FALSE(one_more.step());
    EXPECT_FALSE(one_more.step());
    node.at(1).leave();
    EXPECT_TRUE(one_more.step());
  }
  EXPECT_FALSE(fills().step());
}

TEST(Rounds, SlotIsKeptUntilAllHaveEndedItsRound) {
  expect_ahead(4096, 4096, RoundsShape::slots);
  expect_ahead(4096, 2048, 8);  // of 4 * (4096 + 128) bytes
  expect_ahead(4096, 97, 16);
  expect_ahead(4096, 96, 16);
  expect_ahead(4096, 0, 16);
  constexpr std::int64_t kib = 1024;
  expect_ahead(128 * kib, 128 * kib, RoundsShape::slots);
  expect_ahead(128 * kib, 32 * kib, 16);
  expect_ahead(128 * kib, 8 * kib, 64);
  expect_ahead(128 * kib, 0, 64);
}

/// A rank that makes more calls than another, which has ended, neither waits for its slots nor for memory.
TEST(Rounds, NobodyWaitsForARankThatHasEnded) {
  SimulatedNode node(2, 4096, 1);
  node.end(1);
  Rounds& rounds = node.at(0);
  for (int call = 0; call < 100; ++call) {
    rounds.open();
    const Rounds::Number round = rounds.begin(RoundKind::allgather);
    EXPECT_TRUE(rounds.take(round, 4096));
    rounds.publish(round, 4096);
    bool ended = false;
    for (int check = 0; check < 100 && !ended; ++check) ended = rounds.is_published(round, 1);
    EXPECT_TRUE(ended);
    EXPECT_EQ(rounds.told(round, 1), -1);
    EXPECT_EQ(rounds.outcome(), CallOutcome::left);
    rounds.leave();
  }
}

TEST(Rounds, DataIsWhereItsReaderLooks) {
  SimulatedNode node(3, 4096, 1);
  Rounds& writer = node.at(1);
  std::mt19937 random(1);
  for (int call = 0; call < 1000; ++call) {
    const std::size_t bytes = random() % (random() % 2 ? 4097 : 120);
    writer.open();
    const Rounds::Number round = writer.begin(RoundKind::bcast);
    ASSERT_TRUE(writer.take(round, static_cast<std::int64_t>(bytes)));
    std::memset(writer.own(round), call & 0xff, bytes);
    writer.publish(round, static_cast<std::int64_t>(bytes));
    writer.close();
    for (const int rank : {0, 2}) {
      Rounds& reader = node.at(rank);
      reader.open();
      ASSERT_EQ(reader.begin(RoundKind::bcast), round);
      ASSERT_TRUE(reader.is_published(round, 1));
      ASSERT_EQ(reader.told(round, 1), static_cast<std::int64_t>(bytes));
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(reader.of(round, 1)[i], static_cast<std::byte>(call & 0xff));
      reader.close();
    }
  }
}

/// Two threads that always sleep instead of checking again. A wake-up that is lost costs the whole timeout; the test
/// then fails by the number of sleeps that ended without progress.
TEST(Rounds, NoWakeUpIsLost) {
  SimulatedNode node(2, 4096, 1);
  constexpr int barriers = 3000;
  constexpr long timeout_ns = 10'000'000'000;
  std::atomic<int> vain{0};
  const auto work = [&](int rank) {
    Rounds& rounds = node.at(rank);
    for (int i = 0; i < barriers; ++i) {
      rounds.open();
      Vote vote(rounds, {});
      while (!vote.step()) {
        const Rounds::Sleep sleep = rounds.prepare_sleep();
        if (vote.step()) {
          rounds.cancel(sleep);
          break;
        }
        const auto before = std::chrono::steady_clock::now();
        rounds.start(sleep, timeout_ns);
        if (std::chrono::steady_clock::now() - before >= std::chrono::nanoseconds(timeout_ns)) ++vain;
      }
      rounds.close();
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(vain, 0);
}

}  // namespace
}  // namespace bestride::inline collectives
