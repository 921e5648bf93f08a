// SPDX-License-Identifier: Apache-2.0
// Collectives of all kinds one after the other on one hierarchy: a rank goes on to the next while others are still at the one before.
#include <gtest/gtest.h>

#include <functional>

#include "collectives/broadcast.hpp"
#include "collectives/collect.hpp"
#include "collectives/distribute.hpp"
#include "collectives/exchange.hpp"
#include "collectives/reduce.hpp"
#include "collectives/reduce_scatter.hpp"
#include "collectives/share.hpp"
#include "collectives/simulated_job.hpp"
#include "collectives/test_blocks.hpp"
#include "collectives/test_sums.hpp"

namespace bestride {
namespace {

/// One rank's side of a call: its strand, and what must hold in the end. Owns what the strand works on.
struct Call {
  Strand strand;
  std::function<bool()> correct;
};

using Job = SimulatedJob;
using Sizes = std::vector<std::int64_t>;

Call a_share(Job& job, int rank, Sizes sizes, Pace pace) {
  auto blocks = std::make_shared<TestBlocks>(sizes, false);
  auto strings = std::make_shared<RankBlocks>(job.topology(), *blocks);
  blocks->fill(rank);
  return {share(job.at(rank), *strings, pace), [blocks, strings, ranks = job.ranks()] {
            for (int from = 0; from < ranks; ++from)
              if (!blocks->holds(from)) return false;
            return true;
          }};
}

Call a_broadcast(Job& job, int rank, int root, Sizes sizes, Pace pace) {
  auto blocks = std::make_shared<TestBlocks>(sizes, false);
  if (rank == root) blocks->fill(root);
  return {broadcast(job.at(rank), blocks->of(root), root, pace), [blocks, root] { return blocks->holds(root); }};
}

Call a_collect(Job& job, int rank, int root, Sizes sizes, Pace pace) {
  auto blocks = std::make_shared<TestBlocks>(sizes, false);
  auto strings = std::make_shared<RankBlocks>(job.topology(), *blocks);
  blocks->fill(rank);
  return {collect(job.at(rank), *strings, root, pace), [blocks, strings, rank, root, ranks = job.ranks()] {
            for (int from = 0; rank == root && from < ranks; ++from)
              if (!blocks->holds(from)) return false;
            return true;
          }};
}

Call a_distribute(Job& job, int rank, int root, Sizes sizes, Pace pace) {
  auto blocks = std::make_shared<TestBlocks>(sizes, false);
  auto strings = std::make_shared<RankBlocks>(job.topology(), *blocks);
  for (int to = 0; rank == root && to < job.ranks(); ++to) blocks->fill(to);
  return {distribute(job.at(rank), *strings, root, pace), [blocks, strings, rank] { return blocks->holds(rank); }};
}

/// What rank a has for rank b is as long as a's entry.
Call an_exchange(Job& job, int rank, Sizes sizes, Pace pace) {
  auto input = std::make_shared<TestBlocks>(Sizes(sizes.size(), sizes[static_cast<std::size_t>(rank)]), false);
  auto output = std::make_shared<TestBlocks>(sizes, false);
  const int ranks = job.ranks();
  for (int to = 0; to < ranks; ++to) input->fill(to, rank * ranks + to);
  const bool equal = std::count(sizes.begin(), sizes.end(), sizes[0]) == ranks;
  return {exchange(job.at(rank), *input, *output, equal, pace), [input, output, rank, ranks] {
            for (int from = 0; from < ranks; ++from)
              if (!output->holds(from, from * ranks + rank)) return false;
            return true;
          }};
}

/// Every rank adds its number plus the element's index.
Call a_sum(Job& job, int rank, int root, bool to_all, Sizes sizes, Pace pace) {
  static const Sum<std::uint32_t> sum(false);
  auto order = std::make_shared<ReductionOrder>(job.topology(), false);
  const std::size_t count = static_cast<std::size_t>(sizes[0] / 4);
  auto data = std::make_shared<std::vector<std::uint32_t>>();
  for (std::size_t i = 0; i < count; ++i) data->push_back(static_cast<std::uint32_t>(rank) + static_cast<std::uint32_t>(i));
  const Operand operand(data->data(), static_cast<std::int64_t>(4 * count));
  Strand strand = to_all ? allreduce(job.at(rank), operand, operand, sum, *order, pace)
                         : reduce(job.at(rank), operand, rank == root ? operand : Operand(), root, sum, *order, pace, 400);
  return {std::move(strand), [order, data, all = to_all || rank == root, ranks = static_cast<std::uint32_t>(job.ranks())] {
            for (std::size_t i = 0; all && i < data->size(); ++i)
              if ((*data)[i] != ranks * (ranks - 1) / 2 + ranks * static_cast<std::uint32_t>(i)) return false;
            return true;
          }};
}

TEST(Sequence, CollectivesOfAllKindsFollowOneAnotherWithoutWaitingForAllRanks) {
  std::mt19937_64 random(15);
  for (int round = 0; round < 150; ++round) {
    const std::vector<int> nodes = random_placement(random);
    SimulatedJob job(nodes, random());
    std::vector<std::vector<Strand>> strands_of(nodes.size());
    std::vector<std::function<bool()>> correct;
    for (int number = 0; number < 8; ++number) {
      const int kind = static_cast<int>(random() % 7), root = static_cast<int>(random() % nodes.size());
      const Pace pace{static_cast<std::int64_t>(8 + random() % 3000), static_cast<int>(1 + random() % 3), 500};
      const std::int64_t most = std::vector<std::int64_t>{1, 100, 3000}[random() % 3];
      Sizes sizes(nodes.size(), most);
      for (auto& size : sizes)
        if (number % 2) size = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(most + 1));
      for (int rank = 0; rank < job.ranks(); ++rank) {
        Call call = kind == 0   ? a_share(job, rank, sizes, pace)
                    : kind == 1 ? a_broadcast(job, rank, root, sizes, pace)
                    : kind == 2 ? a_collect(job, rank, root, sizes, pace)
                    : kind == 3 ? a_distribute(job, rank, root, sizes, pace)
                    : kind == 4 ? an_exchange(job, rank, sizes, pace)
                                : a_sum(job, rank, root, kind == 5, sizes, pace);
        strands_of[static_cast<std::size_t>(rank)].push_back(std::move(call.strand));
        correct.push_back(std::move(call.correct));
      }
    }
    std::vector<Strand> strands;
    for (auto& calls : strands_of) strands.push_back(in_turn(std::move(calls)));
    ASSERT_TRUE(job.run(std::move(strands))) << "round " << round;
    for (std::size_t i = 0; i < correct.size(); ++i) ASSERT_TRUE(correct[i]()) << "round " << round << " call " << i / nodes.size();
  }
}

}  // namespace
}  // namespace bestride
