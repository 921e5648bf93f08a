// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/rounds.hpp"

#include <gtest/gtest.h>

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
      EXPECT_TRUE(shape.slot_bytes == 4096 || shape.slot_bytes * RoundsShape::slots * ranks <= limit);
    }
}

/// A rank may fill as many slots as there are before another one has ended a round.
TEST(Rounds, SlotIsKeptUntilAllHaveEndedItsRound) {
  SimulatedNode node(2, 4096, 1);
  Rounds& writer = node.at(0);
  const auto fills = [&]() -> Task {
    writer.open();
    const Rounds::Number round = writer.begin(RoundKind::bcast);
    co_await writer.vacant(round);
    writer.publish(round, 0);
    writer.close();
  };
  for (int slot = 0; slot < RoundsShape::slots; ++slot) EXPECT_TRUE(fills().step());
  Task one_more = fills();
  EXPECT_FALSE(one_more.step());
  EXPECT_FALSE(one_more.step());
  node.at(1).leave();
  EXPECT_TRUE(one_more.step());
  EXPECT_FALSE(fills().step());
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
