// SPDX-License-Identifier: Apache-2.0
#include "cli/try/paired_times.hpp"

#include <gtest/gtest.h>

#include <random>

namespace bestride::inline cli {
namespace {

TEST(PairedTimes, AClearGainIsSignificantFromSixRoundsOn) {
  std::vector<PairedTimes> rounds;
  for (int i = 0; i < least_conclusive_rounds; ++i) {
    EXPECT_GE(compare(rounds).p, significant);
    rounds.emplace_back(1.2 + 0.001 * i, 1.0);
  }
  const PairedComparison found = compare(rounds);
  EXPECT_NEAR(found.ratio, 1.2025, 1e-9);
  EXPECT_LT(found.quartiles[0], found.ratio);
  EXPECT_GT(found.quartiles[1], found.ratio);
  EXPECT_DOUBLE_EQ(found.p, 2.0 / 64);
}

TEST(PairedTimes, ALossIsTheMirrorOfAGain) {
  const std::vector<PairedTimes> gain = {{3, 2}, {5, 4}, {2, 2.5}, {8, 7}, {4, 3}},
                                 loss = {{2, 3}, {4, 5}, {2.5, 2}, {7, 8}, {3, 4}};
  EXPECT_NEAR(compare(gain).ratio * compare(loss).ratio, 1, 1e-12);
  EXPECT_DOUBLE_EQ(compare(gain).p, compare(loss).p);
}

TEST(PairedTimes, EqualTimesAreNoDifference) {
  const PairedComparison found = compare({{2, 2}, {3, 3}, {2, 2}, {1, 1}, {4, 4}, {2, 2}, {3, 3}});
  EXPECT_EQ(found.ratio, 1);
  EXPECT_EQ(found.p, 1);
}

/// If both variants have one distribution, at most 5 % of comparisons say otherwise.
TEST(PairedTimes, NoiseIsRarelySignificant) {
  std::mt19937 random(1);
  std::lognormal_distribution<double> time(0, 0.3);
  int wrong = 0;
  constexpr int comparisons = 2000;
  for (int i = 0; i < comparisons; ++i) {
    std::vector<PairedTimes> rounds;
    for (int round = 0; round < 8; ++round) rounds.emplace_back(time(random), time(random));
    wrong += compare(rounds).p < significant;
  }
  EXPECT_LT(wrong, comparisons * 65 / 1000);
  EXPECT_GT(wrong, 0);
}

TEST(PairedTimes, ASlowRoundOfBothIsNoLoss) {
  // Other work slowed one round down by ten times; within each round the second variant is faster by 5 %.
  const PairedComparison found = compare({{1.05, 1}, {10.5, 10}, {1.05, 1}, {1.05, 1}, {1.05, 1}, {1.05, 1}});
  EXPECT_NEAR(found.ratio, 1.05, 1e-9);
  EXPECT_LT(found.p, significant);
}

TEST(PairedTimes, MostRounds) { EXPECT_LT(compare(std::vector<PairedTimes>(max_rounds, {1.01, 1})).p, 1e-5); }

}  // namespace
}  // namespace bestride::inline cli
