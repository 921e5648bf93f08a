// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/bcast.hpp"

#include <gtest/gtest.h>

#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

TEST(Broadcast, EveryRankGetsTheDataAndEveryByteCrossesEachLinkOnce) {
  std::mt19937_64 random(2);
  for (int round = 0; round < test::repetitions(300); ++round) {
    const std::vector<int> nodes = random_placement(random);
    SimulatedJob job(nodes, random());
    const std::int64_t bytes =
        static_cast<std::int64_t>(random() % std::vector<std::uint64_t>{2, 100, 5000, 100000}[random() % 4]);
    const PipelineSettings pipeline{static_cast<std::int64_t>(1 + random() % 4096), static_cast<int>(1 + random() % 3)};
    std::vector<std::unique_ptr<TestBlocks>> blocks;
    for (int rank = 0; rank < job.ranks(); ++rank)
      blocks.push_back(std::make_unique<TestBlocks>(std::vector<std::int64_t>{bytes}, random() % 3 == 0));
    const int root = static_cast<int>(random() % static_cast<std::uint64_t>(job.ranks()));
    blocks[static_cast<std::size_t>(root)]->fill(0);
    for (int again = 0; again < 2; ++again) {
      std::vector<Task> tasks;
      for (int rank = 0; rank < job.ranks(); ++rank)
        tasks.push_back(bcast(job.at(rank), blocks[static_cast<std::size_t>(rank)]->of(0), root, pipeline));
      ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;
      for (int rank = 0; rank < job.ranks(); ++rank)
        ASSERT_TRUE(blocks[static_cast<std::size_t>(rank)]->holds(0)) << "round " << round;
    }
    for (int node = 0; node < job.topology().nodes(); ++node) {
      EXPECT_EQ(job.bytes_in(node), node == job.topology().node_of(root) ? 0 : 2 * bytes);
      EXPECT_LE(job.bytes_out(node), 2 * bytes);
    }
  }
}

}  // namespace
}  // namespace bestride::inline collectives
