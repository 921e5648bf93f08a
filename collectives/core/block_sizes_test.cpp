// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/block_sizes.hpp"

#include <gtest/gtest.h>

#include "collectives/algorithms/gather.hpp"
#include "collectives/algorithms/scatter.hpp"
#include "collectives/testing/simulated_job.hpp"
#include "collectives/testing/test_blocks.hpp"

namespace bestride {
namespace {

using Sizes = std::vector<std::int64_t>;

/// A rank's blocks, and the sizes that the senders pass.
class Told final : public Operands {
 public:
  Told(const TestBlocks& blocks, const Sizes& sizes) : blocks_(blocks), sizes_(sizes) {}
  Operand of(int rank) const noexcept override { return blocks_.of(rank); }
  std::int64_t bytes(int rank) const noexcept override { return sizes_[static_cast<std::size_t>(rank)]; }

 private:
  const TestBlocks& blocks_;
  const Sizes& sizes_;
};

/// One rank in a gather or a scatter whose sizes are sent. `sizes`: sizes of what it has; `room`: its room for each
/// rank.
struct Side {
  Side(Sizes known, const Sizes& room, bool gaps) : sizes(std::move(known)), blocks(room, gaps) {}
  Sizes sizes;
  TestBlocks blocks;
};

/// True if the room holds the beginning of what was sent and nothing else was written.
bool holds_beginning(const TestBlocks& blocks, int rank, std::int64_t sent) {
  const std::int64_t room = blocks.bytes(rank);
  std::vector<std::byte> expected(static_cast<std::size_t>(room), std::byte{0xEE});
  for (std::int64_t i = 0; i < std::min(room, sent); ++i)
    expected[static_cast<std::size_t>(i)] = TestBlocks::content(rank, i);
  return blocks.holds(rank, expected);
}

Task gather(Hierarchy& hierarchy, Side& side, int root, PipelineSettings pipeline) {
  co_await send_sizes_upward(hierarchy, root, side.sizes);
  const Told told(side.blocks, side.sizes);
  const RankBlocks strings(hierarchy.topology(), told);
  co_await gather(hierarchy, strings, root, pipeline);
}
Task scatter(Hierarchy& hierarchy, Side& side, int root, PipelineSettings pipeline) {
  co_await send_sizes_downward(hierarchy, root, side.sizes);
  const Told told(side.blocks, side.sizes);
  const RankBlocks strings(hierarchy.topology(), told);
  co_await scatter(hierarchy, strings, root, pipeline);
}

/// Two calls with different roots. Each rank begins the second as soon as it has completed the first. Receivers have
/// exactly enough room, or less, or more.
void check(bool gathers, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 300; ++round) {
    const std::vector<int> nodes = random_placement(random);
    SimulatedJob job(nodes, random());
    const PipelineSettings pipeline{static_cast<std::int64_t>(1 + random() % 4096), static_cast<int>(1 + random() % 3)};
    Sizes sent[2], room[2];
    int roots[2];
    std::vector<std::unique_ptr<Side>> sides;
    std::vector<std::vector<Task>> calls(nodes.size());
    for (int call = 0; call < 2; ++call) {
      sent[call] = room[call] = random_sizes(random, nodes.size(), {0, 1, 100, 5000, 40000});
      roots[call] = static_cast<int>(random() % nodes.size());
      for (auto& bytes : room[call])
        if (random() % 4 == 0) bytes = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(2 * bytes + 2));
      for (int rank = 0; rank < job.ranks(); ++rank) {
        const bool at_root = rank == roots[call], sends = gathers ? !at_root : at_root;
        // A rank knows the sizes of what it sends.
        Sizes known(nodes.size(), -1);
        if (!gathers && at_root) known = sent[call];
        if (gathers) known[static_cast<std::size_t>(rank)] = sent[call][static_cast<std::size_t>(rank)];
        auto side = std::make_unique<Side>(known, sends ? sent[call] : room[call], random() % 3 == 0);
        for (int to = 0; to < job.ranks(); ++to)
          if (sends && (!gathers || to == rank)) side->blocks.fill(to);
        auto& own_calls = calls[static_cast<std::size_t>(rank)];
        own_calls.push_back(gathers ? gather(job.at(rank), *side, roots[call], pipeline)
                                    : scatter(job.at(rank), *side, roots[call], pipeline));
        sides.push_back(std::move(side));
      }
    }
    std::vector<Task> tasks;
    for (auto& both : calls) tasks.push_back(in_turn(std::move(both)));
    ASSERT_TRUE(job.run(std::move(tasks))) << "round " << round;

    for (int call = 0; call < 2; ++call)
      for (int rank = 0; rank < job.ranks(); ++rank) {
        const Side& side = *sides[static_cast<std::size_t>(call * job.ranks() + rank)];
        const bool at_root = rank == roots[call];
        for (int other = 0; other < job.ranks(); ++other) {
          const std::int64_t bytes = sent[call][static_cast<std::size_t>(other)];
          // All sizes on the root's node; on any other node, those of its ranks.
          const int node = job.topology().node_of(rank);
          const bool told = node == job.topology().node_of(roots[call]) || node == job.topology().node_of(other);
          ASSERT_TRUE(!told || side.sizes[static_cast<std::size_t>(other)] == bytes)
              << "round " << round << " rank " << rank << " of " << other;
          const bool comes = gathers ? at_root && other != rank : !at_root && other == rank;
          ASSERT_TRUE(!comes || holds_beginning(side.blocks, other, bytes))
              << "round " << round << " rank " << rank << " block " << other;
        }
      }
  }
}

TEST(BlockSizes, OfAGatherAreToldWithWhatIsSentAndReceiversMayHaveOtherRoom) { check(true, 31); }
TEST(BlockSizes, OfAScatterAreToldWithWhatIsSentAndReceiversMayHaveOtherRoom) { check(false, 32); }

/// More sizes than fit into a slot.
TEST(BlockSizes, OfManyRanksGoInParts) {
  for (const int root : {0, 27}) {
    std::vector<int> nodes;
    for (int rank = 0; rank < 40; ++rank) nodes.push_back(rank / 2 % 4);
    SimulatedJob job(nodes, 33, 64);
    std::vector<Sizes> up(nodes.size(), Sizes(nodes.size(), -1)), down = up;
    std::vector<Task> tasks;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      up[rank][rank] = static_cast<std::int64_t>(rank * rank);
      if (static_cast<int>(rank) == root)
        for (std::size_t other = 0; other < nodes.size(); ++other)
          down[rank][other] = static_cast<std::int64_t>(7 * other);
      std::vector<Task> both;
      both.push_back(send_sizes_upward(job.at(static_cast<int>(rank)), root, up[rank]));
      both.push_back(send_sizes_downward(job.at(static_cast<int>(rank)), root, down[rank]));
      tasks.push_back(in_turn(std::move(both)));
    }
    ASSERT_TRUE(job.run(std::move(tasks)));
    const auto neighbours = job.topology().ranks_on(job.topology().node_of(root));
    for (const int rank : neighbours)
      for (std::size_t other = 0; other < nodes.size(); ++other) {
        ASSERT_EQ(up[static_cast<std::size_t>(rank)][other], static_cast<std::int64_t>(other * other));
        ASSERT_EQ(down[static_cast<std::size_t>(rank)][other], static_cast<std::int64_t>(7 * other));
      }
  }
}

}  // namespace
}  // namespace bestride
