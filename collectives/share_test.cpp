// SPDX-License-Identifier: Apache-2.0
#include "collectives/share.hpp"

#include <gtest/gtest.h>

#include "collectives/simulated_job.hpp"
#include "collectives/test_blocks.hpp"

namespace bestride {
namespace {

TEST(Share, GivesEveryRankEveryBlockAndCrossesEveryLinkOnce) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::vector<int> nodes = random_placement(random);
    const int ranks = static_cast<int>(nodes.size());
    SimulatedJob job(nodes, random());
    const std::vector<std::int64_t> bytes = random_sizes(random, nodes.size(), {0, 1, 100, 5000, 40000});
    std::vector<std::unique_ptr<TestBlocks>> blocks;
    std::vector<std::unique_ptr<RankBlocks>> strings;
    std::vector<Strand> strands;
    const Pace pace{static_cast<std::int64_t>(1 + random() % 4096), static_cast<int>(1 + random() % 3)};
    for (int rank = 0; rank < ranks; ++rank) {
      blocks.push_back(std::make_unique<TestBlocks>(bytes, random() % 3 == 0));
      blocks.back()->fill(rank);
      strings.push_back(std::make_unique<RankBlocks>(job.topology(), *blocks.back()));
    }
    for (int again = 0; again < 2; ++again) {
      strands.clear();
      for (int rank = 0; rank < ranks; ++rank)
        strands.push_back(share(job.at(rank), *strings[static_cast<std::size_t>(rank)], pace));
      ASSERT_TRUE(job.run(std::move(strands))) << "round " << round;
      for (int rank = 0; rank < ranks; ++rank)
        for (int from = 0; from < ranks; ++from) ASSERT_TRUE(blocks[static_cast<std::size_t>(rank)]->holds(from)) << "round " << round;
    }
    for (int node = 0; node < job.topology().nodes(); ++node) {
      std::int64_t own = 0, all = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        all += bytes[static_cast<std::size_t>(rank)];
        if (job.topology().node_of(rank) == node) own += bytes[static_cast<std::size_t>(rank)];
      }
      EXPECT_EQ(job.bytes_in(node), 2 * (all - own));
      EXPECT_EQ(job.bytes_out(node), 2 * own * (job.topology().nodes() - 1));
    }
  }
}

}  // namespace
}  // namespace bestride
