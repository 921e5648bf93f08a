// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/relays.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

using Sizes = std::vector<std::int64_t>;

std::int64_t bound_of(const Sizes& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}) - *std::min_element(bytes.begin(), bytes.end());
}

TEST(RelayPlan, NoNodeExceedsTheBusiestLink) {
  std::mt19937_64 random(1);
  int relayed = 0, straight_over = 0;
  for (int round = 0; round < test::repetitions(20000); ++round) {
    const int nodes = static_cast<int>(1 + random() % 9);
    const std::int64_t unit = static_cast<std::int64_t>(1 + random() % 16);
    const std::int64_t most = std::int64_t{1} << (random() % 40),
                       worth = static_cast<std::int64_t>(random() % 3 ? 0 : random() % 100000);
    Sizes bytes;
    for (int node = 0; node < nodes; ++node)
      bytes.push_back(random() % 4 == 0
                          ? 0
                          : static_cast<std::int64_t>(
                                random() % static_cast<std::uint64_t>(random() % 4 == 0 ? most / 100 + 1 : most)) /
                                unit * unit);
    const bool reduces = random() % 2;
    const RelayPlan plan(bytes, unit, worth, reduces ? RelayPlan::Copies::of_all : RelayPlan::Copies::of_others);
    const std::int64_t bound = bound_of(bytes), left_alone = std::max(worth, bound / 64);
    Sizes out(bytes.size());  // what a node sends; in a reduction, what it receives
    for (int node = 0; node < nodes; ++node) {
      const std::int64_t all = bytes[static_cast<std::size_t>(node)];
      straight_over += (nodes - 1) * all > bound + left_alone;
      std::int64_t end = 0;
      for (const RelayedRange& relayed_range : plan.of(node)) {
        ASSERT_EQ(relayed_range.node, node);
        ASSERT_EQ(relayed_range.range.first, end);
        end = relayed_range.range.last;
        ASSERT_EQ(end % unit, 0);
        if (relayed_range.relay == RelayedRange::direct) {
          out[static_cast<std::size_t>(node)] += (nodes - 1) * relayed_range.range.length();
        } else {
          ++relayed;
          ASSERT_NE(relayed_range.relay, node);
          ASSERT_GT(relayed_range.range.length(), 0);
          const auto there = plan.through(relayed_range.relay);
          ASSERT_LT(static_cast<std::size_t>(relayed_range.index), there.size());
          const RelayedRange& same = there[static_cast<std::size_t>(relayed_range.index)];
          ASSERT_TRUE(same.node == node && same.range == relayed_range.range && same.index == relayed_range.index);
          out[static_cast<std::size_t>(node)] += relayed_range.range.length();
          out[static_cast<std::size_t>(relayed_range.relay)] += (nodes - 2 + reduces) * relayed_range.range.length();
        }
      }
      ASSERT_EQ(end, all);
      ASSERT_EQ(plan.of(node).back().relay, RelayedRange::direct);
      // In a reduction, a node sends its data for the others, and for the relays.
      ASSERT_LE(std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0}) - plan.of(node).back().range.length(),
                bound)
          << "round " << round;
    }
    for (int node = 0; node < nodes; ++node) {
      std::size_t before = 0;
      for (const RelayedRange& relayed_range : plan.through(node))
        ASSERT_EQ(static_cast<std::size_t>(relayed_range.index), before++);
      ASSERT_LE(out[static_cast<std::size_t>(node)], bound + std::max(left_alone, nodes * unit))
          << "round " << round << " node " << node;
    }
  }
  EXPECT_GT(relayed, 1000);
  EXPECT_GT(straight_over, 1000);
}

TEST(RelayPlan, NodesOfThreeOneAndTwoRanks) {
  const Sizes bytes{3 << 20, 1 << 20, 2 << 20};
  const RelayPlan plan(bytes, 1, 32 * 1024);
  ASSERT_FALSE(plan.even());
  ASSERT_EQ(plan.of(0).size(), 2u);
  EXPECT_EQ(plan.of(0)[0].relay, 1);
  EXPECT_EQ(plan.of(0)[0].range.length(), 1 << 20);
  EXPECT_EQ(plan.through(1).size(), 1u);
  for (int node : {1, 2}) EXPECT_EQ(plan.of(node).size(), 1u);
}

TEST(RelayPlan, NearlyEqualNodesDoNotRelay) {
  EXPECT_TRUE(RelayPlan(Sizes{}, 1, 0).even());
  EXPECT_TRUE(RelayPlan(Sizes{100, 0}, 1, 0).even()) << "two nodes";
  EXPECT_TRUE(RelayPlan(Sizes{1 << 20, 1 << 20, 1 << 20}, 1, 0).even());
  EXPECT_TRUE(RelayPlan(Sizes{4096, 0, 0, 0, 0}, 4096, 0).even()) << "by one unit";
  EXPECT_FALSE(RelayPlan(Sizes{8192, 0, 0, 0, 0}, 4096, 0).even());
  EXPECT_TRUE(RelayPlan(Sizes{3000, 1000, 2000}, 1, 32 * 1024).even()) << "short";
  EXPECT_TRUE(RelayPlan(Sizes{1000000, 995000, 1000000}, 1, 0).even()) << "within 1/64";
}

}  // namespace
}  // namespace bestride::inline collectives
