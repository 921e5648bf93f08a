// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/alltoall.hpp"

#include <gtest/gtest.h>

#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"
#include "tests/support/repetitions.hpp"

namespace bestride::inline collectives {
namespace {

/// One rank in a call with blocks of `bytes`.
struct Side {
  Side(int ranks, std::int64_t bytes, int rank, bool input_gaps, bool output_gaps)
      : self(rank),
        input(std::vector<std::int64_t>(static_cast<std::size_t>(ranks), bytes), input_gaps),
        output(std::vector<std::int64_t>(static_cast<std::size_t>(ranks), bytes), output_gaps),
        ranks_(ranks) {
    for (int to = 0; to < ranks; ++to) input.fill(to, rank * ranks + to);
  }
  bool holds_all() const {
    for (int from = 0; from < ranks_; ++from)
      if (!output.holds(from, from * ranks_ + self)) return false;
    return true;
  }
  int self;
  TestBlocks input, output;

 private:
  int ranks_;
};

/// Two calls. Each rank begins the second as soon as it has completed the first.
TEST(Alltoall, BlocksArriveAndCrossTheLinkOnce) {
  std::mt19937_64 random(8);
  for (int round = 0; round < test::repetitions(400); ++round) {
    const std::vector<int> nodes = random_placement(random);
    SimulatedJob job(nodes, random(), random() % 4 == 0 ? 64 : 4096);
    const PipelineSettings pipeline{static_cast<std::int64_t>(1 + random() % 4096), static_cast<int>(1 + random() % 3),
                                    std::vector<std::int64_t>{0, 300, 20000, 1 << 30}[random() % 4]};
    std::vector<std::unique_ptr<Side>> sides;
    std::vector<std::vector<Task>> calls(nodes.size());
    std::int64_t of_a_pair = 0;
    for (int call = 0; call < 2; ++call) {
      const std::int64_t most = std::vector<std::int64_t>{0, 1, 50, 800, 5000}[random() % 5];
      const auto bytes = static_cast<std::int64_t>(random() % 2 ? static_cast<std::uint64_t>(most)
                                                                : random() % static_cast<std::uint64_t>(most + 1));
      for (int rank = 0; rank < job.ranks(); ++rank) {
        sides.push_back(std::make_unique<Side>(job.ranks(), bytes, rank, random() % 3 == 0, random() % 3 == 0));
        const Side& side = *sides.back();
        calls[static_cast<std::size_t>(rank)].push_back(alltoall(job.at(rank), side.input, side.output, pipeline));
      }
      of_a_pair += bytes;
    }
    std::vector<Task> tasks;
    for (auto& both : calls) tasks.push_back(in_turn(std::move(both)));
    ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;
    for (const auto& side : sides) ASSERT_TRUE(side->holds_all()) << "round " << round << " rank " << side->self;

    const Topology& topology = job.topology();
    for (int from = 0; from < topology.nodes(); ++from)
      for (int to = 0; to < topology.nodes(); ++to) {
        if (from == to) continue;
        const std::size_t pairs = topology.ranks_on(from).size() * topology.ranks_on(to).size();
        EXPECT_EQ(job.bytes_between(from, to), of_a_pair * static_cast<std::int64_t>(pairs)) << "round " << round;
      }
  }
}

TEST(Alltoall, PairsExchangeBlocksOfAnySize) {
  std::mt19937_64 random(9);
  for (int round = 0; round < test::repetitions(100); ++round) {
    SimulatedJob job(random_placement(random), random());
    const auto ranks = static_cast<std::size_t>(job.ranks());
    std::vector<std::vector<std::int64_t>> sizes;  // by sender, by receiver
    for (std::size_t i = 0; i < ranks; ++i) sizes.push_back(random_unequal_sizes(random, ranks, 2000, 1));
    std::vector<TestBlocks> inputs, outputs;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      std::vector<std::int64_t> received;
      for (const auto& sent : sizes) received.push_back(sent[rank]);
      inputs.emplace_back(sizes[rank], random() % 2 != 0);
      outputs.emplace_back(received, random() % 2 != 0);
      for (std::size_t to = 0; to < ranks; ++to)
        inputs.back().fill(static_cast<int>(to), static_cast<int>(rank * ranks + to));
    }
    std::vector<Task> tasks;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      tasks.push_back(pairwise_alltoall(job.at(static_cast<int>(rank)), inputs[rank], outputs[rank]));
    ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      for (std::size_t from = 0; from < ranks; ++from)
        ASSERT_TRUE(outputs[rank].holds(static_cast<int>(from), static_cast<int>(from * ranks + rank)));
  }
}

TEST(Alltoall, ShortBlocksTakeOneMessagePerPairOfNodes) {
  SimulatedJob job({0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}, 10);
  std::vector<std::unique_ptr<Side>> sides;
  std::vector<Task> tasks;
  for (int rank = 0; rank < job.ranks(); ++rank) {
    sides.push_back(std::make_unique<Side>(job.ranks(), 8, rank, false, false));
    tasks.push_back(alltoall(job.at(rank), sides.back()->input, sides.back()->output, {}));
  }
  ASSERT_TRUE(job.run(std::move(tasks)));
  for (const auto& side : sides) ASSERT_TRUE(side->holds_all());
  // Each node sends one message to each other node. Each rank sends and receives for one of the three other nodes.
  for (int rank = 0; rank < job.ranks(); ++rank) {
    int sent = 0, received = 0;
    for (int other = 0; other < job.ranks(); ++other) {
      sent += static_cast<int>(job.messages(rank, other));
      received += static_cast<int>(job.messages(other, rank));
    }
    EXPECT_EQ(sent, 1) << rank;
    EXPECT_EQ(received, 1) << rank;
  }
}

}  // namespace
}  // namespace bestride::inline collectives
