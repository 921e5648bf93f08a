// SPDX-License-Identifier: Apache-2.0
// Gather and scatter: the same test in both directions.
#include <gtest/gtest.h>

#include "collectives/algorithms/gather.hpp"
#include "collectives/algorithms/scatter.hpp"
#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

/// Two calls with different roots. Each rank begins the second as soon as it has completed the first.
/// Every block arrives, and crosses the link between two nodes once.
template <bool gathers>
void two_calls() {
  std::mt19937_64 random(gathers ? 6 : 7);
  for (int round = 0; round < test::repetitions(300); ++round) {
    const std::vector<int> nodes = random_placement(random);
    SimulatedJob job(nodes, random());
    const std::vector<std::int64_t> bytes = random_sizes(random, nodes.size(), {0, 1, 100, 5000, 40000});
    const PipelineSettings pipeline{static_cast<std::int64_t>(1 + random() % 4096), static_cast<int>(1 + random() % 3)};
    int roots[2];
    for (int& root : roots) root = static_cast<int>(random() % nodes.size());

    struct Call {
      Call(const Topology& topology, const std::vector<std::int64_t>& sizes, bool gaps, int rank, bool root)
          : blocks(sizes, gaps),
            own(blocks, rank),
            vectors(topology, root ? static_cast<const Operands&>(blocks) : own) {
        for (int r = 0; r < topology.ranks(); ++r)
          if (gathers ? r == rank : root) blocks.fill(r);
      }
      TestBlocks blocks;
      OnlyOwn own;
      RankBlocks vectors;
    };
    std::vector<std::unique_ptr<Call>> calls;
    std::vector<Task> tasks;
    for (int rank = 0; rank < job.ranks(); ++rank) {
      std::vector<Task> both;
      for (const int root : roots) {
        calls.push_back(std::make_unique<Call>(job.topology(), bytes, random() % 3 == 0, rank, rank == root));
        both.push_back((gathers ? gather : scatter)(job.at(rank), calls.back()->vectors, root, pipeline, 1));
      }
      tasks.push_back(in_turn(std::move(both)));
    }
    ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;

    std::vector<std::int64_t> in(nodes.size()), out(nodes.size());
    for (int call = 0; call < 2; ++call)
      for (int rank = 0; rank < job.ranks(); ++rank) {
        const int node = job.topology().node_of(rank), root_node = job.topology().node_of(roots[call]);
        const Call& receiver = *calls[static_cast<std::size_t>(2 * (gathers ? roots[call] : rank) + call)];
        ASSERT_TRUE(receiver.blocks.holds(rank)) << "round " << round << " call " << call << " rank " << rank;
        if (node == root_node) continue;
        out[static_cast<std::size_t>(gathers ? node : root_node)] += bytes[static_cast<std::size_t>(rank)];
        in[static_cast<std::size_t>(gathers ? root_node : node)] += bytes[static_cast<std::size_t>(rank)];
      }
    for (int node = 0; node < job.topology().nodes(); ++node) {
      EXPECT_EQ(job.bytes_in(node), in[static_cast<std::size_t>(node)]);
      EXPECT_EQ(job.bytes_out(node), out[static_cast<std::size_t>(node)]);
    }
  }
}

TEST(Gather, RootGetsEveryBlockAndEveryByteEntersItsNodeOnce) { two_calls<true>(); }
TEST(Scatter, EveryRankGetsItsBlockAndEveryByteLeavesTheNodeOnce) { two_calls<false>(); }

}  // namespace
}  // namespace bestride::inline collectives
