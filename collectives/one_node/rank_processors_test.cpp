// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/rank_processors.hpp"

#include <gtest/gtest.h>

namespace bestride::inline collectives {
namespace {

TEST(RankProcessors, SharedWhileAnotherRankIsOnTheSameOne) {
  alignas(128) std::byte memory[RankProcessors::bytes(3)] = {};
  RankProcessors first(memory, 3, 0), second(memory, 3, 1), third(memory, 3, 2);
  // Nobody knows where the others are, and processor 0 is not "unknown".
  EXPECT_FALSE(first.shared());
  first.set(0);
  EXPECT_FALSE(first.shared());
  EXPECT_FALSE(second.shared());
  second.set(1);
  EXPECT_FALSE(first.shared());
  EXPECT_FALSE(second.shared());
  third.set(0);
  EXPECT_TRUE(first.shared());
  EXPECT_TRUE(third.shared());
  EXPECT_FALSE(second.shared());
  third.set(2);
  EXPECT_FALSE(first.shared());
  EXPECT_FALSE(third.shared());
}

/// sched_getcpu() may fail.
TEST(RankProcessors, UnknownProcessorIsNotShared) {
  alignas(128) std::byte memory[RankProcessors::bytes(2)] = {};
  RankProcessors first(memory, 2, 0), second(memory, 2, 1);
  first.set(0);
  first.set(-1);
  second.set(-1);
  EXPECT_FALSE(first.shared());
  EXPECT_FALSE(second.shared());
}

TEST(RankProcessors, BytesHoldAllRanks) {
  for (const int ranks : {0, 1, 2, 31, 32, 33, 128}) {
    EXPECT_EQ(RankProcessors::bytes(ranks) % 128, 0u);
    EXPECT_GE(RankProcessors::bytes(ranks), static_cast<std::size_t>(ranks) * 4);
  }
}

}  // namespace
}  // namespace bestride::inline collectives
