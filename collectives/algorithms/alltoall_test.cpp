// SPDX-License-Identifier: Apache-2.0
#include "collectives/algorithms/alltoall.hpp"

#include <gtest/gtest.h>

#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"

namespace bestride {
namespace {

/// Bytes that rank `from` has for rank `to`.
using Table = std::vector<std::vector<std::int64_t>>;

/// One rank in a call. `room`: bytes that rank `to` has for what comes from rank `from`.
struct Side {
  Side(const Table& bytes, const Table& room, int rank, bool input_gaps, bool output_gaps)
      : ranks(static_cast<int>(bytes.size())),
        self(rank),
        input(bytes[static_cast<std::size_t>(rank)], input_gaps),
        output(column(room, rank), output_gaps),
        comes(column(bytes, rank)) {
    for (int to = 0; to < ranks; ++to) input.fill(to, rank * ranks + to);
  }
  static std::vector<std::int64_t> column(const Table& bytes, int rank) {
    std::vector<std::int64_t> all;
    for (const auto& row : bytes) all.push_back(row[static_cast<std::size_t>(rank)]);
    return all;
  }
  bool holds_all() const {
    bool any_cut = false;
    for (int from = 0; from < ranks; ++from) {
      const std::int64_t sent = comes[static_cast<std::size_t>(from)], room = output.bytes(from);
      std::vector<std::byte> expected(static_cast<std::size_t>(room), std::byte{0xEE});
      for (std::int64_t i = 0; i < std::min(sent, room); ++i)
        expected[static_cast<std::size_t>(i)] = TestBlocks::content(from * ranks + self, i);
      if (!output.holds(from, expected)) return false;
      any_cut |= sent > room;
    }
    return cut == any_cut;
  }
  int ranks, self;
  TestBlocks input, output;
  std::vector<std::int64_t> comes;
  bool cut = false;
};

/// Bytes that the sizes of unequal blocks add to what one node sends another.
std::int64_t told_bytes(const Topology& topology, int from, int to) {
  return static_cast<std::int64_t>(sizeof(std::int64_t) * topology.ranks_on(from).size() *
                                   topology.ranks_on(to).size());
}

/// Two calls. Each rank begins the second as soon as it has completed the first. `other_room`: receivers may have more
/// or less room.
void check(bool equal, bool other_room, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    const std::vector<int> nodes = random_placement(random);
    // Short slots: the sizes do not fit into one.
    SimulatedJob job(nodes, random(), random() % 4 == 0 ? 64 : 4096);
    const PipelineSettings pipeline{static_cast<std::int64_t>(1 + random() % 4096), static_cast<int>(1 + random() % 3),
                                    std::vector<std::int64_t>{0, 300, 20000, 1 << 30}[random() % 4]};
    std::vector<Table> tables;
    std::vector<std::unique_ptr<Side>> sides;
    std::vector<std::vector<Task>> calls(nodes.size());
    for (int call = 0; call < 2; ++call) {
      const std::int64_t most = std::vector<std::int64_t>{0, 1, 50, 800, 5000}[random() % 5];
      Table bytes(nodes.size(), std::vector<std::int64_t>(nodes.size(), most));
      for (auto& row : bytes)
        for (auto& b : row)
          if (!equal)
            b = random() % 3 == 0 ? 0 : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
      Table room = bytes;
      for (auto& row : room)
        for (auto& b : row)
          if (other_room && random() % 4 == 0)
            b = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * b + 2));
      for (int rank = 0; rank < job.ranks(); ++rank) {
        sides.push_back(std::make_unique<Side>(bytes, room, rank, random() % 3 == 0, random() % 3 == 0));
        Side& side = *sides.back();
        calls[static_cast<std::size_t>(rank)].push_back(
            alltoall(job.at(rank), side.input, side.output, equal, pipeline, &side.cut));
      }
      tables.push_back(std::move(bytes));
    }
    std::vector<Task> tasks;
    for (auto& both : calls) tasks.push_back(in_turn(std::move(both)));
    ASSERT_TRUE(exchange_fits(job.topology()));
    ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;
    for (const auto& side : sides) ASSERT_TRUE(side->holds_all()) << "round " << round << " rank " << side->self;

    for (int from = 0; from < job.topology().nodes(); ++from)
      for (int to = 0; to < job.topology().nodes(); ++to) {
        if (from == to) continue;
        std::int64_t all = equal ? 0 : 2 * told_bytes(job.topology(), from, to);
        for (const Table& bytes : tables)
          for (const int a : job.topology().ranks_on(from))
            for (const int b : job.topology().ranks_on(to))
              all += bytes[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
        EXPECT_EQ(job.bytes_between(from, to), all) << "round " << round;
      }
  }
}

TEST(Exchange, EqualBlocksReachTheirRanksAndCrossTheWireOnce) { check(true, false, 8); }
TEST(Exchange, UnequalBlocksReachTheirRanksAndOnlyTheirSizesCrossTheWireBesides) { check(false, false, 9); }
TEST(Exchange, WhatIsLongerThanItsPlaceIsCutAndSaidAndWhatIsShorterLeavesTheRest) { check(false, true, 11); }

TEST(Exchange, WhatIsShortGoesInOneMessageForEachPairOfNodesSpreadOverTheRanks) {
  for (const bool equal : {true, false}) {
    SimulatedJob job({0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}, 10);
    const Table bytes(12, std::vector<std::int64_t>(12, 8));
    std::vector<std::unique_ptr<Side>> sides;
    std::vector<Task> tasks;
    for (int rank = 0; rank < job.ranks(); ++rank) {
      sides.push_back(std::make_unique<Side>(bytes, bytes, rank, false, false));
      tasks.push_back(alltoall(job.at(rank), sides.back()->input, sides.back()->output, equal, {}));
    }
    ASSERT_TRUE(job.run(std::move(tasks)));
    for (const auto& side : sides) ASSERT_TRUE(side->holds_all());
    // Each node sends one message to each other node, after one with the sizes. Each rank sends and receives for one of
    // the three other nodes.
    for (int rank = 0; rank < job.ranks(); ++rank) {
      int sent = 0, received = 0;
      for (int other = 0; other < job.ranks(); ++other) {
        sent += static_cast<int>(job.messages(rank, other));
        received += static_cast<int>(job.messages(other, rank));
      }
      EXPECT_EQ(sent, equal ? 1 : 2) << rank;
      EXPECT_EQ(received, equal ? 1 : 2) << rank;
    }
  }
}

TEST(Exchange, SizesOfBlocksFitUpToANumberOfRanks) {
  const auto two_nodes_of = [](int ranks) {
    std::vector<int> nodes(static_cast<std::size_t>(2 * ranks));
    for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i] = static_cast<int>(i % 2);
    return Topology(nodes);
  };
  EXPECT_TRUE(exchange_fits(two_nodes_of(1023)));
  EXPECT_FALSE(exchange_fits(two_nodes_of(1024)));
}

}  // namespace
}  // namespace bestride
